// A lease on the credit of one workspace: the amount that one loop may spend without asking the
// ledger, and when to ask for more. Pure: time is an argument, in monotonic microseconds. See
// docs/adr/0042.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace tollgate::inference_router {

class CreditLease {
 public:
  // The question to the ledger (TakeLeaseRequest). wanted_nano_usd 0 gives back what is left.
  struct Ask {
    int32_t month = 0;
    int64_t used_nano_usd = 0;
    int64_t wanted_nano_usd = 0;
    int64_t settled_nano_usd = 0;
  };
  // The ledger's answer (TakeLeaseResponse).
  struct Answer {
    bool denied = false;
    int32_t month = 0;
    int64_t granted_nano_usd = 0;
    int64_t valid_us = 0;
    bool recalled = false;  // even if denied: what the lessee has must be given back
  };

  // The lease covers the cost of this many seconds at the current rate. The router asks for more
  // when a quarter is used, so that 30 s are left: longer than a database failover takes.
  static constexpr int64_t kSeconds = 40;
  static constexpr int64_t kSecondUs = 1'000'000;
  static constexpr int64_t kAskPauseUs = kSecondUs / 5;
  static constexpr int64_t kRenewUs = 10 * kSecondUs;
  // Pause after a refusal or a recall.
  static constexpr int64_t kDeniedUs = 5 * kSecondUs;
  // Without a request for this long the lease is given back. Longer than a database failover.
  static constexpr int64_t kIdleUs = 30 * kSecondUs;
  // During this time the cost rate is unknown; assume the worst case.
  static constexpr int64_t kYoungUs = 10 * kSecondUs;

  // Takes the amount out of the lease. Returns false if the lease does not cover it.
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
  // Call when the request has ended, or does not run. kept: the part of the amount that the ledger
  // takes out of the lease.
  void Finish(int64_t amount_nano_usd, int64_t kept_nano_usd) {
    used_nano_usd_ -= amount_nano_usd - kept_nano_usd;
    running_nano_usd_ -= amount_nano_usd;
    spent_nano_usd_ += kept_nano_usd;
  }

  // Call when the ledger has settled or refused a request: it needs no more of the lease.
  void OnSettled(int64_t kept_nano_usd) { settled_nano_usd_ += kept_nano_usd; }

  // The next question to the ledger; empty while an earlier one is unanswered.
  std::optional<Ask> NextAsk(int64_t now_us);
  // Admits nothing more and gives back what is left.
  void GiveBack() { giving_back_ = true; }
  // The ledger wants it back. Returns whether it admitted requests until now. Without a lease, the
  // next question waits.
  bool Recall(int64_t now_us);
  // Call when a question got no answer: it is asked again.
  void OnNoAnswer() { asking_ = false; }
  // Returns whether the answer ended the admission of requests.
  bool OnAnswer(const Answer& answer, int64_t now_us);

  // Whether requests may be admitted, as far as they fit.
  bool Holds(int64_t now_us) const { return granted_nano_usd_ > 0 && now_us < valid_until_us_; }
  // Whether the lease has ended at the ledger, or expired without an answer. The next lease has
  // another name. Requests admitted from this lease stay with it.
  bool IsOver(int64_t now_us) const { return over_ || (began_ && now_us >= valid_until_us_); }
  // Whether no request has asked for the lease for a while and nothing is left to give back.
  bool IsForgotten(int64_t now_us) const {
    return !asking_ && now_us - last_request_us_ > kIdleUs && !Holds(now_us);
  }
  int64_t left_nano_usd() const { return granted_nano_usd_ - used_nano_usd_; }
  int32_t month() const { return month_; }

  // The next lease of the workspace, with nothing granted and the same rate.
  CreditLease Next() const;

 private:
  // Enough for kSeconds, plus the running requests once more, plus eight of the largest.
  int64_t WantedNanoUsd() const;
  void MeasureRate(int64_t now_us);

  int32_t month_ = 0;
  int64_t granted_nano_usd_ = 0;
  int64_t used_nano_usd_ = 0;
  int64_t settled_nano_usd_ = 0;  // part of the used amount
  int64_t valid_until_us_ = 0;
  bool began_ = false;  // has been granted at least once
  bool over_ = false;
  bool giving_back_ = false;
  bool asking_ = false;
  bool asked_to_end_ = false;  // the latest question gives the lease back
  int64_t asked_us_ = INT64_MIN / 2;
  int64_t answered_us_ = INT64_MIN / 2;
  int64_t not_before_us_ = INT64_MIN / 2;
  int64_t first_request_us_ = 0;
  int64_t last_request_us_ = 0;
  int64_t largest_nano_usd_ = 0;
  int64_t running_nano_usd_ = 0;
  // Cost of the requests that have ended, amounts of the requests that have begun, and the start of
  // the window in which they are counted.
  int64_t spent_nano_usd_ = 0;
  int64_t asked_nano_usd_ = 0;
  int64_t window_us_ = 0;
  int64_t rate_nano_usd_ = 0;  // per second
};

}  // namespace tollgate::inference_router
