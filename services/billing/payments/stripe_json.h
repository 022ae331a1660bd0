// Converts Stripe's objects to our types.
#pragma once

#include "common/json/json.h"
#include "services/billing/payments/provider.h"

namespace tollgate::billing::payments {

inline constexpr char kPaymentKey[] = "tollgate_payment";
inline constexpr char kWorkspaceKey[] = "tollgate_workspace";
inline constexpr char kRefundKey[] = "tollgate_refund";
inline constexpr char kReloadKey[] = "tollgate_reload";  // "1": auto-reload has made the charge
// Number of the idempotency key of a charge, from the second on.
inline constexpr char kKeyNumberKey[] = "tollgate_key";

// Returns "" unless it is a string.
std::string TextOf(json::Value value);
// Returns the id, whether the object is expanded or not.
std::string IdOf(json::Value value);

// Reads a payment intent. off_session: no customer can complete it on a page.
ChargeView ReadIntent(json::Value intent, bool off_session);
// Reads a Checkout session of a payment, with its payment intent expanded.
ChargeView ReadSession(json::Value session);
MethodView ReadMethod(json::Value method);
// Reads a dispute, with its payment intent expanded or not.
DisputeView ReadDispute(json::Value dispute);
DisputeView ReadFraudWarning(json::Value warning);
RefundView ReadRefund(json::Value refund);

}  // namespace tollgate::billing::payments
