// The rules of auto-reload: pure functions of its row.
#pragma once

#include "services/billing/payments/payment_types.h"

namespace tollgate::billing::payments {

// Delay after the first, second and third decline in a row; 0: pause.
int64_t BackoffUs(int64_t declines);
// Resets the charged amount at the start of a UTC month.
void RollMonth(AutoReload& reload, int64_t now_us);
// Applies a declined or cancelled charge of this reload. Returns whether the reload is paused now.
bool Decline(AutoReload& reload, const Payment& payment, int64_t now_us);
// Applies a charge that was paid and credited.
void Succeed(AutoReload& reload);
// Ends a pause or a backoff.
void Resume(AutoReload& reload);
void Pause(AutoReload& reload, std::string reason, int64_t next_us);

inline constexpr char kPausedByCeiling[] = "monthly_ceiling";
inline constexpr char kPausedWithoutMethod[] = "no_payment_method";

}  // namespace tollgate::billing::payments
