#include "services/inference_router/domain/credit_lease.h"

#include <utility>

#include "common/money/money.h"

namespace tollgate::inference_router {

std::optional<CreditLease::Ask> CreditLease::NextAsk(int64_t now_us) {
  MeasureRate(now_us);
  const bool may_ask =
      giving_back_ || (now_us >= not_before_us_ && now_us - asked_us_ >= kAskPauseUs);
  if (asking_ || over_ || !may_ask) return std::nullopt;
  if (Holds(now_us) && now_us - last_request_us_ > kIdleUs) giving_back_ = true;
  const int64_t wanted = WantedNanoUsd();
  if (giving_back_) {
    if (!Holds(now_us)) return std::nullopt;  // the lease expires by itself
  } else if (now_us - last_request_us_ > kIdleUs || IsOver(now_us) ||
             (began_ && left_nano_usd() > wanted / 4 * 3 && now_us - answered_us_ < kRenewUs)) {
    return std::nullopt;
  }
  asking_ = true;
  asked_to_end_ = giving_back_;
  asked_us_ = now_us;
  return Ask{month_, used_nano_usd_, giving_back_ ? 0 : wanted, settled_nano_usd_};
}

bool CreditLease::OnAnswer(const Answer& answer, int64_t now_us) {
  asking_ = false;
  answered_us_ = now_us;
  if (asked_to_end_) {
    over_ = true;
    return false;
  }
  if (answer.denied) {
    not_before_us_ = now_us + kDeniedUs;
    return answer.recalled && Recall(now_us);
  }
  month_ = answer.month;
  granted_nano_usd_ = std::max(granted_nano_usd_, answer.granted_nano_usd);
  // The ledger counts from its answer, which is later than the question.
  valid_until_us_ = asked_us_ + answer.valid_us;
  began_ = true;
  return answer.recalled && Recall(now_us);
}

bool CreditLease::Recall(int64_t now_us) {
  if (!Holds(now_us)) {
    not_before_us_ = now_us + kDeniedUs;
    return false;
  }
  return !std::exchange(giving_back_, true);
}

CreditLease CreditLease::Next() const {
  CreditLease next;
  next.asked_us_ = asked_us_;
  next.not_before_us_ = giving_back_ ? answered_us_ + kDeniedUs : not_before_us_;
  next.first_request_us_ = first_request_us_;
  next.last_request_us_ = last_request_us_;
  next.largest_nano_usd_ = largest_nano_usd_;
  next.window_us_ = window_us_;
  next.rate_nano_usd_ = rate_nano_usd_;
  return next;
}

int64_t CreditLease::WantedNanoUsd() const {
  const Int128 wanted =
      Int128{rate_nano_usd_} * kSeconds + running_nano_usd_ + Int128{largest_nano_usd_} * 8;
  return static_cast<int64_t>(std::min<Int128>(wanted, INT64_MAX / 4));
}

void CreditLease::MeasureRate(int64_t now_us) {
  const int64_t passed_us = now_us - window_us_;
  if (passed_us < kSecondUs) return;
  const bool is_young = now_us - first_request_us_ < kYoungUs;
  const int64_t cost = is_young ? std::max(spent_nano_usd_, asked_nano_usd_) : spent_nano_usd_;
  const auto rate = static_cast<int64_t>(Int128{cost} * kSecondUs / passed_us);
  // Rises immediately and falls slowly.
  rate_nano_usd_ = std::max(rate, rate_nano_usd_ - rate_nano_usd_ / 8);
  spent_nano_usd_ = 0;
  asked_nano_usd_ = 0;
  window_us_ = now_us;
}

}  // namespace tollgate::inference_router
