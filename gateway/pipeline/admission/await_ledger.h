// Waiting for an unreachable ledger, for example while its database fails over (decision 50,
// docs/adr/0034), and for the credit of a charge of auto-reload that is under way: requests that
// would otherwise get a 503 or 402 wait up to three seconds.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Bounds the waiting requests of all loops of the process, so that an outage does not fill the
// gateway. Thread-safe.
class LedgerWaiters {
 public:
  static constexpr int64_t kMaxRequests = 4'096;
  // Bytes of the waiting requests, in the form that engines get.
  static constexpr int64_t kMaxBytes = int64_t{128} << 20;

  // The place of one waiting request, given back by the destructor.
  class Place {
   public:
    Place(LedgerWaiters& waiters, int64_t bytes) : waiters_(&waiters), bytes_(bytes) {}
    Place(Place&& other) noexcept
        : waiters_(std::exchange(other.waiters_, nullptr)), bytes_(other.bytes_) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (waiters_ != nullptr) waiters_->Leave(bytes_);
    }

   private:
    LedgerWaiters* waiters_;
    int64_t bytes_;
  };

  // How a wait ended, for the metric.
  enum class End : uint8_t { kAnswered, kLate, kLeft, kRefused };

  // The first call registers the metrics.
  static LedgerWaiters& Get();
  // Returns nullopt when too many requests or too many bytes are waiting.
  std::optional<Place> Enter(int64_t bytes);
  void Count(End end) { ends_[static_cast<size_t>(end)]->Increment(); }

 private:
  LedgerWaiters();
  void Leave(int64_t bytes);

  std::atomic<int64_t> requests_ = 0;
  std::atomic<int64_t> bytes_ = 0;
  prometheus::Gauge& gauge_;
  prometheus::Counter* ends_[4];  // by End
};

// Whether billing or its ledger was unreachable.
bool IsUnreachable(const Result<billing::v1::AuthorizeResult>& answer);
// Whether credit is missing but may arrive soon.
bool IsReloading(const Result<billing::v1::AuthorizeResult>& answer);
// Asks billing once for the context's hold.
Task<Result<billing::v1::AuthorizeResult>> AuthorizeOnce(RequestContext& context);
// Asks billing for the context's hold and retries while it is unreachable or the workspace is
// being reloaded. Ends early when no place
// is free. When the caller leaves, it ends with the attempt that is running, or within half a
// second. The hold of an attempt without an answer may exist, so a caller that gives up must void
// it.
Task<Result<billing::v1::AuthorizeResult>> AuthorizeOrWait(RequestContext& context);

}  // namespace tollgate::gateway
