// Rate limits while the limiter service is unreachable: each loop enforces its share of every
// limit, so an outage neither lifts the limits nor refuses everything (docs/design/limits.md 8).
// One loop only.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "gateway/worker/second_chance_map.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::gateway {

class LocalLimiter {
 public:
  // loops: number of event loops among which this process's share is divided.
  explicit LocalLimiter(int loops) : loops_(loops), subjects_(20'000) {}

  // Checks all limits of the item; takes from all of them or from none. A granted item must be
  // released.
  ratelimit::v1::AcquireResult Acquire(const ratelimit::v1::AcquireItem& item, int64_t now_us);
  // Frees the concurrency slots. Rates recover by time only.
  void Release(const std::string& workspace_id, const std::string& key_id);

 private:
  // Each rate as the time at which it will have recovered (GCRA), µs.
  struct Subject {
    int64_t requests_tat_us = 0;
    int64_t tokens_tat_us = 0;
    int64_t running = 0;
  };

  int64_t LocalShare(int64_t limit) const;
  static bool CheckRate(int64_t limit, int64_t cost, int64_t tat_us, int64_t now_us,
                        int64_t* next_tat_us, int64_t* wait_us);
  bool CheckSubject(Subject& subject, const ratelimit::v1::SubjectLimits& limits, int64_t tokens,
                    int64_t now_us, Subject* next, ratelimit::v1::AcquireResult* result) const;

  const int loops_;
  SecondChanceMap<Subject> subjects_;
};

// The concurrency slots of a granted item; freed by the destructor.
class LocalSlot {
 public:
  LocalSlot() = default;
  LocalSlot(LocalLimiter& limiter, std::string workspace_id, std::string key_id)
      : limiter_(&limiter), workspace_id_(std::move(workspace_id)), key_id_(std::move(key_id)) {}
  LocalSlot(LocalSlot&& other) noexcept { *this = std::move(other); }
  LocalSlot& operator=(LocalSlot&& other) noexcept {
    Free();
    limiter_ = std::exchange(other.limiter_, nullptr);
    workspace_id_ = std::move(other.workspace_id_);
    key_id_ = std::move(other.key_id_);
    return *this;
  }
  ~LocalSlot() { Free(); }

 private:
  void Free() {
    if (limiter_ != nullptr) limiter_->Release(workspace_id_, key_id_);
    limiter_ = nullptr;
  }
  LocalLimiter* limiter_ = nullptr;
  std::string workspace_id_, key_id_;
};

}  // namespace tollgate::gateway
