// The rules of auto-reload: pure functions of the row.
#pragma once

#include "services/billing/payments/payment_types.h"

namespace tollgate::billing::payments {

// After the first, second and third decline in a row; 0: pause.
int64_t BackoffUs(int64_t declines);
// A new UTC month starts with nothing charged.
void RollMonth(AutoReload& reload, int64_t now_us);
// A charge of this reload was declined or cancelled. Returns whether it is paused now.
bool Decline(AutoReload& reload, const Payment& payment, int64_t now_us);
// It was paid and its credit is posted.
void Succeed(AutoReload& reload);
// Ends a pause or a backoff.
void Resume(AutoReload& reload);
void Pause(AutoReload& reload, std::string reason, int64_t next_us);

inline constexpr char kPausedByCeiling[] = "monthly_ceiling";
inline constexpr char kPausedWithoutMethod[] = "no_payment_method";

}  // namespace tollgate::billing::payments
