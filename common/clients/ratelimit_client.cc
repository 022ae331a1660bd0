#include <grpcpp/channel.h>

#include "common/base/id.h"
#include "common/clients/backoff.h"
#include "common/clients/batcher.h"
#include "common/clients/limiter_gateways.h"
#include "common/clients/limiter_stores.h"
#include "common/clients/make_clients.h"
#include "common/clients/transport.h"
#include "tollgate/ratelimit/v1/ratelimit.grpc.pb.h"

namespace tollgate {
namespace {

using ratelimit::v1::AcquireItem;
using ratelimit::v1::AcquireRequest;
using ratelimit::v1::AcquireResponse;
using ratelimit::v1::AcquireResult;
using ratelimit::v1::GetUseRequest;
using ratelimit::v1::GetUseResponse;
using ratelimit::v1::PeekRequest;
using ratelimit::v1::PeekResponse;
using ratelimit::v1::RateLimitService;
using ratelimit::v1::ReleaseItem;
using ratelimit::v1::ReleaseRequest;
using ratelimit::v1::ReleaseResponse;
using ratelimit::v1::RenewItem;
using ratelimit::v1::RenewRequest;
using ratelimit::v1::RenewResponse;
using Async = RateLimitService::StubInterface::async_interface;

// Milliseconds. If Acquire takes longer, the caller uses its local limits
// (docs/design/limits.md 8).
constexpr int64_t kAcquireTimeout = 500;
constexpr int64_t kReleaseTimeout = 2'000;
constexpr int kReleaseAttempts = 4;
constexpr int64_t kPeekTimeout = 500;
// Serves people, so it may take longer than a request can wait.
constexpr int64_t kUseTimeout = 2'000;
constexpr int64_t kRenewTimeout = 1'000;
constexpr size_t kRenewItems = 1024;  // in one message

struct Done {};

// Identifies this process among the calling gateways.
const std::string& ProcessId() {
  static const std::string id = Id::New().ToBytes();
  return id;
}

using AcquireTransport = Transport<AcquireRequest, AcquireResponse>;
using ReleaseTransport = Transport<ReleaseRequest, ReleaseResponse>;
using PeekTransport = Transport<PeekRequest, PeekResponse>;
using UseTransport = Transport<GetUseRequest, GetUseResponse>;
using RenewTransport = Transport<RenewRequest, RenewResponse>;

class RateLimitClientImpl : public RateLimitClient {
 public:
  RateLimitClientImpl(Loop& loop, RenewTransport renew, AcquireTransport acquire,
                      ReleaseTransport release, PeekTransport peek, UseTransport use)
      : loop_(loop),
        acquire_(acquire),
        renew_(std::move(renew)),
        peek_(std::move(peek)),
        use_(std::move(use)) {
    acquires_ = std::make_shared<Acquires>(
        loop, [acquire](std::vector<AcquireItem> items, int64_t timeout_ms) {
          return SendAcquire(acquire, std::move(items), timeout_ms);
        });
    releases_ = std::make_shared<Releases>(
        loop, [release](std::vector<ReleaseItem> items, int64_t timeout_ms) {
          return SendRelease(release, std::move(items), timeout_ms);
        });
  }
  // For a limiter in the same process, which answers within the call.
  RateLimitClientImpl(Loop& loop, RenewTransport renew, const DirectServices& direct)
      : loop_(loop),
        acquire_(Over(loop, direct.acquire)),
        renew_(std::move(renew)),
        peek_(Over(loop, direct.peek)),
        use_(Over(loop, direct.limit_use)) {
    acquires_ = std::make_shared<Acquires>(
        loop,
        [acquire = direct.acquire](std::vector<AcquireItem> items,
                                   std::function<void(Result<std::vector<AcquireResult>>)> done) {
          acquire(AcquireOf(std::move(items)),
                  [done = std::move(done)](Result<AcquireResponse> response) {
                    done(TakeAcquired(std::move(response)));
                  });
        },
        Acquires::When::kAtOnce);
    releases_ = std::make_shared<Releases>(
        loop,
        [release = direct.release](std::vector<ReleaseItem> items,
                                   std::function<void(Result<std::vector<Done>>)> done) {
          const size_t count = items.size();
          release(BatchRequest<ReleaseRequest, ReleaseItem>(&ReleaseRequest::mutable_items,
                                                            std::move(items)),
                  [done = std::move(done), count](const Result<ReleaseResponse>& response) {
                    done(TakeReleased(response, count));
                  });
        },
        Releases::When::kAtOnce);
  }

  Task<Result<AcquireResult>> Acquire(AcquireItem item) override {
    return acquires_->Call(std::move(item), kAcquireTimeout);
  }
  Task<void> Present() override { return SendPresence(acquire_); }
  Task<void> Release(ReleaseItem item) override {
    return ReleaseWithRetries(loop_, releases_, std::move(item));
  }
  Task<std::vector<std::string>> Renew(std::vector<RenewItem> slots) override {
    return SendRenew(loop_, renew_, std::move(slots));
  }
  Task<Result<PeekResponse>> Peek(PeekRequest request) override {
    return peek_(std::move(request), kPeekTimeout);
  }
  Task<Result<GetUseResponse>> GetUse(GetUseRequest request) override {
    return use_(std::move(request), kUseTimeout);
  }

 private:
  using Acquires = Batcher<AcquireItem, AcquireResult>;
  using Releases = Batcher<ReleaseItem, Done>;

  static AcquireRequest AcquireOf(std::vector<AcquireItem> items) {
    auto request =
        BatchRequest<AcquireRequest, AcquireItem>(&AcquireRequest::mutable_items, std::move(items));
    request.set_gateway_id(ProcessId());
    return request;
  }
  static Result<std::vector<AcquireResult>> TakeAcquired(Result<AcquireResponse> response) {
    if (response.ok()) {
      const int64_t now_us = SystemClock::Get().MonotonicUs();
      LimiterStores::Get().Saw(response->store_id(), now_us);
      LimiterGateways::Get().Saw(response->gateways(), now_us);
    }
    return TakeResults<AcquireResponse, AcquireResult>(std::move(response));
  }
  static Result<std::vector<Done>> TakeReleased(const Result<ReleaseResponse>& response,
                                                size_t count) {
    if (!response.ok()) return Fail{response.error()};
    return std::vector<Done>(count);
  }

  static Task<Result<std::vector<AcquireResult>>> SendAcquire(AcquireTransport acquire,
                                                              std::vector<AcquireItem> items,
                                                              int64_t timeout_ms) {
    co_return TakeAcquired(co_await acquire(AcquireOf(std::move(items)), timeout_ms));
  }

  static Task<void> SendPresence(AcquireTransport acquire) {
    (void)co_await SendAcquire(std::move(acquire), {}, kAcquireTimeout);
  }

  static Task<Result<std::vector<Done>>> SendRelease(ReleaseTransport release,
                                                     std::vector<ReleaseItem> items,
                                                     int64_t timeout_ms) {
    const size_t count = items.size();
    auto request =
        BatchRequest<ReleaseRequest, ReleaseItem>(&ReleaseRequest::mutable_items, std::move(items));
    co_return TakeReleased(co_await release(std::move(request), timeout_ms), count);
  }

  static Task<void> ReleaseWithRetries(Loop& loop, std::shared_ptr<Releases> releases,
                                       ReleaseItem item) {
    Backoff backoff(100, 2'000);
    for (int attempt = 1;; ++attempt) {
      auto done = co_await releases->Call(item, kReleaseTimeout);
      if (done.ok() || attempt == kReleaseAttempts) co_return;
      co_await loop.Sleep(backoff.NextMs());
    }
  }

  // The next renewal replaces a lost one.
  static Task<std::vector<std::string>> SendRenew(Loop& loop, RenewTransport renew,
                                                  std::vector<RenewItem> slots) {
    std::vector<std::string> restored;
    for (size_t begin = 0; begin < slots.size(); begin += kRenewItems) {
      RenewRequest request;
      const size_t end = std::min(begin + kRenewItems, slots.size());
      for (size_t i = begin; i < end; ++i) *request.add_items() = std::move(slots[i]);
      for (int attempt = 0; attempt < 2; ++attempt) {
        auto response = co_await renew(request, kRenewTimeout);
        if (response.ok()) {
          restored.insert(restored.end(), response->restored().begin(), response->restored().end());
          break;
        }
        co_await loop.Sleep(200);
      }
    }
    co_return restored;
  }

  Loop& loop_;
  AcquireTransport acquire_;
  RenewTransport renew_;
  PeekTransport peek_;
  UseTransport use_;
  std::shared_ptr<Acquires> acquires_;
  std::shared_ptr<Releases> releases_;
};

}  // namespace

std::unique_ptr<RateLimitClient> MakeRateLimitClient(Loop& loop, ReplicasPtr replicas,
                                                     const DirectServices* direct) {
  auto renew = Over<RateLimitService>(loop, replicas, &Async::Renew);
  if (direct != nullptr && direct->acquire && direct->release && direct->peek &&
      direct->limit_use) {
    return std::make_unique<RateLimitClientImpl>(loop, std::move(renew), *direct);
  }
  return std::make_unique<RateLimitClientImpl>(
      loop, std::move(renew),
      OverStream<RateLimitService>(loop, replicas, &Async::Acquire, &Async::AcquireCalls),
      OverStream<RateLimitService>(loop, replicas, &Async::Release, &Async::ReleaseCalls),
      Over<RateLimitService>(loop, replicas, &Async::Peek),
      Over<RateLimitService>(loop, replicas, &Async::GetUse));
}

}  // namespace tollgate
