// Waiting for a ledger that is unreachable, for example while its database changes its primary
// (decision 50, docs/adr/0034): up to three seconds, by requests that would get a 503 otherwise.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Who waits, over all loops of the process: an outage does not fill a gateway with requests.
// Thread-safe.
class LedgerWaiters {
 public:
  static constexpr int64_t kMaxRequests = 4'096;
  // Of the requests that wait, as engines will get them.
  static constexpr int64_t kMaxBytes = int64_t{128} << 20;

  // Of one request; it is given back when this is destroyed.
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

  // How a wait ended; for a metric.
  enum class End : uint8_t { kAnswered, kLate, kLeft, kRefused };

  // The first call makes the metrics.
  static LedgerWaiters& Get();
  // nullopt: too many wait, or too many bytes.
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

// Whether billing, or its ledger, could not be asked.
bool IsUnreachable(const Result<billing::v1::AuthorizeResult>& answer);
// Asks billing for the context's hold, without waiting for a ledger that is unreachable.
Task<Result<billing::v1::AuthorizeResult>> AuthorizeOnce(RequestContext& context);
// Asks billing for the context's hold, again while it does not answer. Ends early when there is no
// place, and within half a second after the caller has left, or when the attempt is answered that
// runs then. The hold of an attempt that was not answered may be there: whoever gives up voids it.
Task<Result<billing::v1::AuthorizeResult>> AuthorizeOrWait(RequestContext& context);

}  // namespace tollgate::gateway
