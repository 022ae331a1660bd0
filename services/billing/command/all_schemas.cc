#include "services/billing/command/all_schemas.h"

#include <array>

#include "common/audit/log.h"
#include "services/billing/alerts/alert_schema.h"
#include "services/billing/payments/payment_schema.h"
#include "services/billing/storage/credit_by_hand.h"
#include "services/billing/storage/request_ids.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/verification_table.h"

namespace tollgate::billing {

std::span<const sql::Schema> AllSchemas() {
  static const std::array<sql::Schema, 7> schemas = {{
      {audit::kEntriesComponent, audit::EntriesMigrations()},
      {kSchemaComponent, Migrations()},
      {kVerificationsComponent, VerificationMigrations()},
      {kRequestIdsComponent, RequestIdMigrations()},
      {kCreditByHandComponent, CreditByHandMigrations()},
      {payments::kComponent, payments::PaymentMigrations()},
      {alerts::kComponent, alerts::AlertMigrations()},
  }};
  return schemas;
}

}  // namespace tollgate::billing
