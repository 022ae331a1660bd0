// How keys are used at one loop, reported to auth in batches: for last_used_time, and for the
// policy against abuse, and for the figures of refusals. Counters are those of the running hour,
// minute and quarter of an hour, so a report that is
// repeated changes nothing. What a gateway has not reported when it stops is lost, as is a batch
// that auth refuses: the same one would be refused again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/error/error.h"
#include "common/observability/metrics.h"
#include "common/runtime/loop.h"

namespace tollgate::gateway {

class KeyUseReporter : public std::enable_shared_from_this<KeyUseReporter> {
 public:
  // A report every 20 s: last_used_time is at most a minute behind, also when one report is lost.
  static constexpr int64_t kIntervalMs = 20'000;

  KeyUseReporter(Loop& loop, const Clock& clock, AuthClient& auth);

  // A request that was authenticated.
  void Count(const std::string& key_id, std::string_view address);
  // The request was answered with the status of this error. Each is counted by its code
  // (decision 55); as abuse those from 400 to 499, but not 429: a customer at their rate limit is
  // no abuse.
  void CountRefusal(const std::string& key_id, const ErrorRow& row);
  // Calls auth no more: its client is about to be destroyed.
  void Stop();

  // Reports what was counted since the last report. Runs by itself; tests call it.
  Task<void> Report();

 private:
  struct Use {
    int64_t last_used_us = 0;
    int64_t hour = 0, requests = 0;
    int64_t minute = 0, refusals = 0;
    int64_t quarter = 0;
    std::map<std::string_view, int64_t> refusals_by_code;  // the texts are those of the catalog
    std::unordered_set<uint64_t> addresses;
    bool changed = false;
  };
  static void Report(const std::string& key_id, const Use& use, auth::v1::KeyUse& into);
  // Null when too many keys are counted.
  Use* Find(const std::string& key_id);
  void ArmTimer();
  static Task<void> ReportLater(std::shared_ptr<KeyUseReporter> self);

  Loop& loop_;
  const Clock& clock_;
  AuthClient& auth_;
  const std::string reporter_;
  prometheus::Counter& dropped_;
  std::unordered_map<std::string, Use> uses_;
  // Periods that have ended since the last report.
  std::vector<auth::v1::KeyUse> ended_;
  bool wants_addresses_ = false;
  bool reporting_ = false;
  bool stopped_ = false;
  uint64_t timer_ = 0;
};

}  // namespace tollgate::gateway
