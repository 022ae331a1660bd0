// Rate limits while the limiter service is unreachable: each loop enforces its share of every
// limit, so an outage neither lifts the limits nor refuses everything (docs/design/limits.md 8).
// One loop only.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gateway/worker/second_chance_map.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::gateway {

class LocalLimiter;

// The concurrency slots of a request, freed by the destructor.
class LocalSlot {
 public:
  LocalSlot() = default;
  LocalSlot(LocalLimiter& limiter, std::vector<std::string> subjects)
      : limiter_(&limiter), subjects_(std::move(subjects)) {}
  LocalSlot(LocalSlot&& other) noexcept { *this = std::move(other); }
  LocalSlot& operator=(LocalSlot&& other) noexcept {
    Free();
    limiter_ = std::exchange(other.limiter_, nullptr);
    subjects_ = std::move(other.subjects_);
    return *this;
  }
  ~LocalSlot() { Free(); }

 private:
  void Free();
  LocalLimiter* limiter_ = nullptr;
  std::vector<std::string> subjects_;
};

class LocalLimiter {
 public:
  // loops: number of event loops that divide this process's share.
  explicit LocalLimiter(int loops) : loops_(loops), subjects_(20'000) {}

  // Sets the number of gateways that divide the limits; 0: unknown.
  void ShareAmong(int64_t gateways) { gateways_ = gateways > 0 ? gateways : kUnknownGateways; }
  // Records the limiter's answer, so that an outage starts with what is left of each limit and does
  // not grant a second burst.
  void Observe(const ratelimit::v1::AcquireItem& item, const ratelimit::v1::AcquireResult& result,
               int64_t now_us);
  // Checks all limits of the item except those in shadow mode. Takes from all of them or from none.
  // A granted item must be followed by Take.
  ratelimit::v1::AcquireResult Acquire(const ratelimit::v1::AcquireItem& item, int64_t now_us);
  // Checks only the limits on concurrency, because the limiter has checked the rates.
  ratelimit::v1::AcquireResult CheckSlots(const ratelimit::v1::AcquireItem& item);
  // Counts the slots of a granted item. Call it for items that the limiter granted, too, so that an
  // outage starts with the requests that are running.
  LocalSlot Take(const ratelimit::v1::AcquireItem& item);

 private:
  friend class LocalSlot;
  static constexpr int64_t kUnknownGateways = 2;
  // Each rate is stored as the time at which it will have recovered (GCRA), µs.
  struct Subject {
    int64_t requests_tat_us = 0;
    int64_t tokens_tat_us = 0;
    int64_t running = 0;
  };

  int64_t LocalShare(int64_t limit) const;
  static int64_t ObservedTat(int64_t limit, int64_t share, int64_t cost,
                             const ratelimit::v1::LimitStatus& status, bool granted, int64_t tat_us,
                             int64_t now_us);
  static bool CheckRate(int64_t limit, int64_t cost, int64_t tat_us, int64_t now_us,
                        int64_t* next_tat_us, int64_t* wait_us);
  bool CheckSlots(const Subject& subject, const ratelimit::v1::SubjectLimits& limits,
                  ratelimit::v1::AcquireResult* result) const;
  bool CheckRates(const Subject& subject, const ratelimit::v1::SubjectLimits& limits,
                  int64_t tokens, int64_t now_us, Subject* next,
                  ratelimit::v1::AcquireResult* result) const;
  Subject Find(const std::string& name);
  void Release(const std::vector<std::string>& subjects);

  const int loops_;
  int64_t gateways_ = kUnknownGateways;
  SecondChanceMap<Subject> subjects_;
};

}  // namespace tollgate::gateway
