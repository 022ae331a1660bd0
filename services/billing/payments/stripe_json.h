// What Stripe's objects mean for us.
#pragma once

#include "common/json/json.h"
#include "services/billing/payments/provider.h"

namespace tollgate::billing::payments {

inline constexpr char kPaymentKey[] = "tollgate_payment";
inline constexpr char kWorkspaceKey[] = "tollgate_workspace";
inline constexpr char kRefundKey[] = "tollgate_refund";

// "" unless it is a string.
std::string TextOf(json::Value value);
// An id, whether the object is expanded or not.
std::string IdOf(json::Value value);

// A payment intent. off_session: no customer can finish it on a page.
ChargeView ReadIntent(json::Value intent, bool off_session);
// A session of Checkout for a payment, with its payment intent expanded.
ChargeView ReadSession(json::Value session);
MethodView ReadMethod(json::Value method);
// With its payment intent expanded or not.
DisputeView ReadDispute(json::Value dispute);
RefundView ReadRefund(json::Value refund);

}  // namespace tollgate::billing::payments
