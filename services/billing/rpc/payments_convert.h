// Payments as resources of the admin API.
#pragma once

#include "services/billing/payments/payment_types.h"
#include "services/billing/payments/reconcile.h"
#include "tollgate/admin/v1/payments.pb.h"

namespace tollgate::billing {

void ToResource(const payments::Payment& payment, admin::v1::Payment& out);
void ToResource(const payments::AutoReload& reload, admin::v1::AutoReload& out);
void ToResource(const payments::PaymentMethod& method, admin::v1::PaymentMethod& out);
void ToResource(const payments::Reconciliation& result, admin::v1::ReconcilePaymentsResponse& out);

}  // namespace tollgate::billing
