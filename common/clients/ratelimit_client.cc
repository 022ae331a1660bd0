#include <grpcpp/channel.h>

#include "common/base/id.h"
#include "common/clients/backoff.h"
#include "common/clients/batcher.h"
#include "common/clients/limiter_gateways.h"
#include "common/clients/limiter_stores.h"
#include "common/clients/make_clients.h"
#include "tollgate/ratelimit/v1/ratelimit.grpc.pb.h"

namespace tollgate {
namespace {

namespace rv = ratelimit::v1;

// Milliseconds. If Acquire takes longer, the caller uses its local limits
// (docs/design/limits.md 8).
constexpr int64_t kAcquireTimeout = 500;
constexpr int64_t kReleaseTimeout = 2'000;
constexpr int kReleaseAttempts = 4;
constexpr size_t kRenewItems = 1024;  // in one message

struct Done {};

// Identifies this process among the calling gateways.
const std::string& ProcessId() {
  static const std::string id = Id::New().ToBytes();
  return id;
}

struct AcquireMethod
    : rpc::StreamedMethod<rv::RateLimitService, rv::AcquireRequest, rv::AcquireResponse,
                          rv::AcquireCallsRequest, rv::AcquireCallsResponse>,
      BatchedMethod<rv::AcquireItem, rv::AcquireResult> {
  static constexpr UnaryPointer kUnary = &Async::Acquire;
  static constexpr bool kMayBeDirect = true;
  static constexpr StreamPointer kStream = &Async::AcquireCalls;
  static constexpr int64_t kTimeoutMs = kAcquireTimeout;
  static constexpr bool kAnsweredAtOnce = true;
  static void OnRequest(rv::AcquireRequest& request) { request.set_gateway_id(ProcessId()); }
  static void OnResponse(const rv::AcquireResponse& response) {
    const int64_t now_us = SystemClock::Get().MonotonicUs();
    LimiterStores::Get().Saw(response.store_id(), now_us);
    LimiterGateways::Get().Saw(response.gateways(), now_us);
  }
};
struct ReleaseMethod
    : rpc::StreamedMethod<rv::RateLimitService, rv::ReleaseRequest, rv::ReleaseResponse,
                          rv::ReleaseCallsRequest, rv::ReleaseCallsResponse>,
      BatchedMethod<rv::ReleaseItem, Done> {
  static constexpr UnaryPointer kUnary = &Async::Release;
  static constexpr StreamPointer kStream = &Async::ReleaseCalls;
  static constexpr bool kAnsweredAtOnce = true;
};
struct RenewMethod : rpc::UnaryMethod<rv::RateLimitService, rv::RenewRequest, rv::RenewResponse> {
  static constexpr UnaryPointer kUnary = &Async::Renew;
  static constexpr int64_t kTimeoutMs = 1'000;
};
struct PeekMethod : rpc::UnaryMethod<rv::RateLimitService, rv::PeekRequest, rv::PeekResponse> {
  static constexpr UnaryPointer kUnary = &Async::Peek;
  static constexpr bool kMayBeDirect = true;
  static constexpr int64_t kTimeoutMs = 500;
};
// Serves people, so it may take longer than a request can wait.
struct GetUseMethod
    : rpc::UnaryMethod<rv::RateLimitService, rv::GetUseRequest, rv::GetUseResponse> {
  static constexpr UnaryPointer kUnary = &Async::GetUse;
  static constexpr bool kMayBeDirect = true;
  static constexpr int64_t kTimeoutMs = 2'000;
};

class RateLimitClientImpl : public RateLimitClient {
 public:
  RateLimitClientImpl(Loop& loop, const ReplicasPtr& replicas, const DirectServices& direct)
      : loop_(loop),
        acquire_(loop, replicas, direct.acquire),
        renew_(loop, replicas),
        peek_(loop, replicas, direct.peek),
        use_(loop, replicas, direct.limit_use),
        acquires_(std::make_shared<Batcher<AcquireMethod>>(loop, acquire_)),
        releases_(std::make_shared<Releases>(
            loop, rpc::ReplicaCaller<ReleaseMethod>(loop, replicas, direct.release))) {}

  Task<Result<rv::AcquireResult>> Acquire(rv::AcquireItem item) override {
    return acquires_->Call(std::move(item), kAcquireTimeout);
  }
  Task<void> Present() override { return SendPresence(acquire_); }
  Task<void> Release(rv::ReleaseItem item) override {
    return ReleaseWithRetries(loop_, releases_, std::move(item));
  }
  Task<std::vector<std::string>> Renew(std::vector<rv::RenewItem> slots) override {
    return SendRenew(loop_, renew_, std::move(slots));
  }
  Task<Result<rv::PeekResponse>> Peek(rv::PeekRequest request) override {
    return peek_.Call(std::move(request));
  }
  Task<Result<rv::GetUseResponse>> GetUse(rv::GetUseRequest request) override {
    return use_.Call(std::move(request));
  }

 private:
  using Acquirer = rpc::ReplicaCaller<AcquireMethod>;
  using Renewer = rpc::ReplicaCaller<RenewMethod>;
  using Releases = Batcher<ReleaseMethod>;

  static Task<void> SendPresence(Acquirer acquire) {
    rv::AcquireRequest request;
    AcquireMethod::OnRequest(request);
    const auto response = co_await acquire.Call(std::move(request));
    if (response.ok()) AcquireMethod::OnResponse(*response);
  }

  static Task<void> ReleaseWithRetries(Loop& loop, std::shared_ptr<Releases> releases,
                                       rv::ReleaseItem item) {
    Backoff backoff(100, 2'000);
    for (int attempt = 1;; ++attempt) {
      auto done = co_await releases->Call(item, kReleaseTimeout);
      if (done.ok() || attempt == kReleaseAttempts) co_return;
      co_await loop.Sleep(backoff.NextMs());
    }
  }

  // The next renewal replaces a lost one.
  static Task<std::vector<std::string>> SendRenew(Loop& loop, Renewer renew,
                                                  std::vector<rv::RenewItem> slots) {
    std::vector<std::string> restored;
    for (size_t begin = 0; begin < slots.size(); begin += kRenewItems) {
      rv::RenewRequest request;
      const size_t end = std::min(begin + kRenewItems, slots.size());
      for (size_t i = begin; i < end; ++i) *request.add_items() = std::move(slots[i]);
      for (int attempt = 0; attempt < 2; ++attempt) {
        auto response = co_await renew.Call(request);
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
  const Acquirer acquire_;
  const Renewer renew_;
  const rpc::ReplicaCaller<PeekMethod> peek_;
  const rpc::ReplicaCaller<GetUseMethod> use_;
  const std::shared_ptr<Batcher<AcquireMethod>> acquires_;
  const std::shared_ptr<Releases> releases_;
};

}  // namespace

std::unique_ptr<RateLimitClient> MakeRateLimitClient(Loop& loop, ReplicasPtr replicas,
                                                     const DirectServices* direct) {
  return std::make_unique<RateLimitClientImpl>(loop, replicas,
                                               direct != nullptr ? *direct : DirectServices());
}

}  // namespace tollgate
