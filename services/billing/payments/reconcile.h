// Compares the provider's charges with payments and with what the ledger has posted, both ways.
#pragma once

#include <string>
#include <vector>

#include "common/error/error.h"
#include "services/billing/payments/payment_engine.h"

namespace tollgate::billing::payments {

struct Difference {
  enum class Kind : uint8_t {
    kMissingCredit,  // the provider has the money, the ledger no credit
    kMissingCharge,  // the ledger has credit, the provider no charge
    kAmount,         // both have it, with different amounts
    kUnknownCharge,  // a charge that belongs to no payment of ours, or a second one for a payment
    kRefund,         // what was refunded differs
    kLog,            // the log of changes of a workspace was changed
  };
  Kind kind = Kind::kMissingCredit;
  std::string workspace;
  std::string payment;
  std::string provider_id;
  int64_t provider_nano_usd = 0;
  int64_t ledger_nano_usd = 0;
};
std::string_view Name(Difference::Kind kind);

struct Reconciliation {
  int64_t charges = 0;   // of the provider, paid
  int64_t payments = 0;  // that were compared
  std::vector<Difference> differences;
};

// Payments made in [start, end). Fails when the provider or the database does: a part of the truth
// is no result.
Result<Reconciliation> Reconcile(PaymentEngine& engine, int64_t start_us, int64_t end_us);

}  // namespace tollgate::billing::payments
