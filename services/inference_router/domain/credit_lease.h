// A lease on the credit of one workspace: what one loop may spend without asking the ledger, and
// when it asks for more. Pure: time is an argument, in monotonic microseconds. See docs/adr/0042.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace tollgate::inference_router {

class CreditLease {
 public:
  // What the ledger is asked for (TakeLeaseRequest). wanted_nano_usd 0 gives back what is left.
  struct Ask {
    int32_t month = 0;
    int64_t used_nano_usd = 0;
    int64_t wanted_nano_usd = 0;
  };
  // Its answer (TakeLeaseResponse).
  struct Answer {
    bool denied = false;
    int32_t month = 0;
    int64_t granted_nano_usd = 0;
    int64_t valid_us = 0;
    bool recalled = false;
  };

  // The lease pays for the costs of so many seconds at the present rate. More is asked for when a
  // quarter is used, so that 30 s are left: above the time that a database needs to fail over.
  static constexpr int64_t kSeconds = 40;
  static constexpr int64_t kSecondUs = 1'000'000;
  static constexpr int64_t kAskPauseUs = kSecondUs / 5;
  static constexpr int64_t kRenewUs = 10 * kSecondUs;
  // After a refusal or a recall.
  static constexpr int64_t kDeniedUs = 5 * kSecondUs;
  // Without a request for so long it is given back; not while a database fails over.
  static constexpr int64_t kIdleUs = 30 * kSecondUs;
  // For so long what requests cost is not known well: they are taken to cost what they may.
  static constexpr int64_t kYoungUs = 10 * kSecondUs;

  // Takes the amount out of the lease; false: the lease does not cover it.
  bool Admit(int64_t amount_nano_usd, int64_t now_us) {
    if (last_request_us_ == 0) first_request_us_ = now_us;
    last_request_us_ = now_us;
    asked_nano_usd_ += amount_nano_usd;
    largest_nano_usd_ = std::max(largest_nano_usd_, amount_nano_usd);
    if (!Holds(now_us) || giving_back_ || amount_nano_usd > left_nano_usd()) return false;
    used_nano_usd_ += amount_nano_usd;
    running_nano_usd_ += amount_nano_usd;
    return true;
  }
  // The request has ended, or does not run. kept: what the ledger takes out of the lease for it, at
  // most the amount.
  void Finish(int64_t amount_nano_usd, int64_t kept_nano_usd) {
    used_nano_usd_ -= amount_nano_usd - kept_nano_usd;
    running_nano_usd_ -= amount_nano_usd;
    spent_nano_usd_ += kept_nano_usd;
  }

  // What to ask now; nothing while an earlier question is open.
  std::optional<Ask> NextAsk(int64_t now_us);
  // Admits nothing more, and gives back what is left.
  void GiveBack() { giving_back_ = true; }
  // One that got no answer is asked again.
  void OnNoAnswer() { asking_ = false; }
  void OnAnswer(const Answer& answer, int64_t now_us);

  // Whether requests may be admitted, as far as they fit.
  bool Holds(int64_t now_us) const { return granted_nano_usd_ > 0 && now_us < valid_until_us_; }
  // It is over at the ledger, or will be without an answer: the next lease is another one, with
  // another name. What was admitted from this one stays this one's.
  bool IsOver(int64_t now_us) const { return over_ || (began_ && now_us >= valid_until_us_); }
  // No request has asked for it for a while, and nothing is left to give back.
  bool IsForgotten(int64_t now_us) const {
    return !asking_ && now_us - last_request_us_ > kIdleUs && !Holds(now_us);
  }
  int64_t left_nano_usd() const { return granted_nano_usd_ - used_nano_usd_; }
  int32_t month() const { return month_; }

  // The next lease of the workspace: nothing granted, the same rate.
  CreditLease Next() const;

 private:
  // Enough for kSeconds, for as many running requests again, and for a few of the largest.
  int64_t WantedNanoUsd() const;
  void MeasureRate(int64_t now_us);

  int32_t month_ = 0;
  int64_t granted_nano_usd_ = 0;
  int64_t used_nano_usd_ = 0;
  int64_t valid_until_us_ = 0;
  bool began_ = false;  // granted once
  bool over_ = false;
  bool giving_back_ = false;
  bool asking_ = false;
  bool asked_to_end_ = false;  // by the open or latest question
  int64_t asked_us_ = INT64_MIN / 2;
  int64_t answered_us_ = INT64_MIN / 2;
  int64_t not_before_us_ = INT64_MIN / 2;
  int64_t first_request_us_ = 0;
  int64_t last_request_us_ = 0;
  int64_t largest_nano_usd_ = 0;
  int64_t running_nano_usd_ = 0;
  // Of requests that have ended, of all that have begun, and since when they are counted.
  int64_t spent_nano_usd_ = 0;
  int64_t asked_nano_usd_ = 0;
  int64_t window_us_ = 0;
  int64_t rate_nano_usd_ = 0;  // a second
};

}  // namespace tollgate::inference_router
