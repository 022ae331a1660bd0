#include "services/billing/payments/reload_rules.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/time_units.h"

namespace tollgate::billing::payments {

int64_t BackoffUs(int64_t declines) {
  switch (declines) {
    case 1:
      return kHourUs;
    case 2:
      return 6 * kHourUs;
    case 3:
      return 24 * kHourUs;
    default:
      return 0;
  }
}

void RollMonth(AutoReload& reload, int64_t now_us) {
  const int32_t month = UtcMonth(now_us);
  // The month never decreases: a clock that steps back must not reset the ceiling.
  if (month <= reload.month) return;
  reload.month = month;
  reload.month_charged_nano_usd = 0;
}

void Pause(AutoReload& reload, std::string reason, int64_t next_us) {
  reload.state = ReloadState::kPaused;
  reload.pause_reason = std::move(reason);
  reload.next_us = next_us;
}

bool Decline(AutoReload& reload, const Payment& payment, int64_t now_us) {
  if (reload.month == UtcMonth(payment.created_us)) {
    reload.month_charged_nano_usd =
        std::max<int64_t>(0, reload.month_charged_nano_usd - payment.amount_nano_usd);
  }
  ++reload.declines;
  const int64_t wait_us = BackoffUs(reload.declines);
  if (wait_us == 0) {
    Pause(reload, "declined: " + payment.reason, 0);
    return true;
  }
  reload.state = ReloadState::kBackoff;
  reload.pause_reason = payment.reason;
  reload.next_us = now_us + wait_us;
  return false;
}

void Succeed(AutoReload& reload) { Resume(reload); }

void Resume(AutoReload& reload) {
  reload.state = ReloadState::kIdle;
  reload.pause_reason.clear();
  reload.next_us = 0;
  reload.declines = 0;
}

}  // namespace tollgate::billing::payments
