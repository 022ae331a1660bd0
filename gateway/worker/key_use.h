// Counts how keys are used on one loop and reports it to auth in batches: for last_used_time, for
// the abuse policy and for the statistics of refusals. The counters cover the current hour, minute
// and quarter of an hour, so a repeated report changes nothing. What a gateway has not reported
// when it stops is lost, and so is a batch that auth refuses: auth would refuse it again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/error/error.h"
#include "common/observability/metrics.h"
#include "common/runtime/loop.h"

namespace tollgate::gateway {

class KeyUseReporter : public std::enable_shared_from_this<KeyUseReporter> {
 public:
  // One report every 20 s keeps last_used_time at most a minute behind, even when one report is
  // lost.
  static constexpr int64_t kIntervalMs = 20'000;

  KeyUseReporter(Loop& loop, const Clock& clock, AuthClient& auth);

  // Counts an authenticated request.
  void Count(const std::string& key_id, std::string_view address);
  // Counts a request that was answered with this error. Every error is counted by its code
  // and reason (decision 55). Statuses 400 to 499 also count as abuse, except 429: a customer at
  // their rate limit does not abuse the service.
  void CountRefusal(const std::string& key_id, const Error& error);
  // Makes no more calls to auth, whose client is about to be destroyed.
  void Stop();

  // Reports what was counted since the last report. Called by a timer, and by tests.
  Task<void> Report();

 private:
  struct Use {
    int64_t last_used_us = 0;
    int64_t hour = 0, requests = 0;
    int64_t minute = 0, refusals_in_minute = 0;
    int64_t quarter = 0;
    std::map<std::pair<std::string_view, Reason>, int64_t> refusals;  // by code and reason
    std::unordered_set<uint64_t> addresses;
    bool changed = false;
  };
  static void Report(const std::string& key_id, const Use& use, auth::v1::KeyUse& into);
  // Returns null when too many keys are counted.
  Use* Find(const std::string& key_id);
  void ArmTimer();
  static Task<void> ReportLater(std::shared_ptr<KeyUseReporter> self);

  Loop& loop_;
  const Clock& clock_;
  AuthClient& auth_;
  const std::string reporter_;
  prometheus::Counter& dropped_;
  std::unordered_map<std::string, Use> uses_;
  // Final counts of periods that have ended since the last report.
  std::vector<auth::v1::KeyUse> ended_;
  bool wants_addresses_ = false;
  bool reporting_ = false;
  bool stopped_ = false;
  uint64_t timer_ = 0;
};

}  // namespace tollgate::gateway
