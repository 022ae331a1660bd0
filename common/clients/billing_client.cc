#include <grpcpp/channel.h>

#include <algorithm>

#include "common/base/clock.h"
#include "common/clients/backoff.h"
#include "common/clients/ledger_batcher.h"
#include "common/clients/make_clients.h"
#include "common/clients/watch_subscription.h"
#include "common/observability/metrics.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"
#include "tollgate/billing/v1/lease_recalls.grpc.pb.h"

namespace tollgate {
namespace {

namespace bv = billing::v1;

// In milliseconds.
constexpr int64_t kVoidAttemptTimeout = 2'000;
// The hold has expired by then.
constexpr int64_t kVoidPatience = 90'000;
// The void of a refused request also reverses what was charged meanwhile (decision 52), so it is
// retried through a longer outage.
constexpr int64_t kRefusalPatience = 600'000;
// Billing sends a message every second; without one for this long the stream is lost.
constexpr int64_t kRecallsSilence = 4'000;
// Limit of pending voids per client. While billing is unreachable each refused request adds one.
// Beyond the limit holds are left to expire.
constexpr int kMaxVoids = 32'768;

struct AuthorizeMethod
    : rpc::StreamedMethod<bv::BillingService, bv::AuthorizeRequest, bv::AuthorizeResponse,
                          bv::AuthorizeCallsRequest, bv::AuthorizeCallsResponse>,
      BatchedMethod<bv::AuthorizeItem, bv::AuthorizeResult> {
  static constexpr UnaryPointer kUnary = &Async::Authorize;
  static constexpr StreamPointer kStream = &Async::AuthorizeCalls;
};
struct VoidMethod : rpc::StreamedMethod<bv::BillingService, bv::VoidRequest, bv::VoidResponse,
                                        bv::VoidCallsRequest, bv::VoidCallsResponse>,
                    BatchedMethod<bv::VoidItem, bv::MeterResult> {
  static constexpr UnaryPointer kUnary = &Async::Void;
  static constexpr StreamPointer kStream = &Async::VoidCalls;
};
struct MeterMethod : rpc::StreamedMethod<bv::MeteringService, bv::MeterRequest, bv::MeterResponse,
                                         bv::MeterCallsRequest, bv::MeterCallsResponse>,
                     BatchedMethod<bv::MeterOp, bv::MeterResult> {
  static constexpr UnaryPointer kUnary = &Async::Meter;
  static constexpr StreamPointer kStream = &Async::MeterCalls;
  static auto& Items(bv::MeterRequest& request) { return *request.mutable_ops(); }
};
struct TakeLeaseMethod
    : rpc::UnaryMethod<bv::MeteringService, bv::TakeLeaseRequest, bv::TakeLeaseResponse> {
  static constexpr UnaryPointer kUnary = &Async::TakeLease;
  static constexpr bool kMayBeDirect = true;
};
struct GetUsageMethod
    : rpc::UnaryMethod<bv::BillingService, bv::GetUsageRequest, bv::GetUsageResponse> {
  static constexpr UnaryPointer kUnary = &Async::GetUsage;
  static constexpr int64_t kTimeoutMs = 5'000;
};
struct GetReceiptMethod
    : rpc::UnaryMethod<bv::BillingService, bv::GetReceiptRequest, bv::GetReceiptResponse> {
  static constexpr UnaryPointer kUnary = &Async::GetReceipt;
  static constexpr int64_t kTimeoutMs = 5'000;
};
// The caller of the gateway waits for this.
struct StoreAnswerMethod
    : rpc::UnaryMethod<bv::BillingService, bv::StoreAnswerRequest, bv::StoreAnswerResponse> {
  static constexpr UnaryPointer kUnary = &Async::StoreAnswer;
  static constexpr int64_t kTimeoutMs = 1'000;
};
struct GetAnswerMethod
    : rpc::UnaryMethod<bv::BillingService, bv::GetAnswerRequest, bv::GetAnswerResponse> {
  static constexpr UnaryPointer kUnary = &Async::GetAnswer;
  static constexpr int64_t kTimeoutMs = 3'000;
};

class BillingClientImpl : public BillingClient {
 public:
  BillingClientImpl(Loop& loop, ReplicasPtr replicas, const DirectServices& direct)
      : loop_(loop),
        replicas_(std::move(replicas)),
        authorizes_(
            std::make_shared<LedgerBatcher<AuthorizeMethod>>(loop, replicas_, direct.authorize)),
        voids_(std::make_shared<Voids>(loop, replicas_, direct.void_holds)) {}

  Task<Result<bv::AuthorizeResult>> Authorize(bv::AuthorizeItem item, int64_t timeout_ms) override {
    return authorizes_->Call(std::move(item), timeout_ms);
  }
  void Void(bv::VoidItem item) override {
    if (*voids_running_ >= kMaxVoids) return voids_dropped_.Increment();
    loop_.Spawn(VoidInBackground(loop_, voids_, std::move(item), voids_running_, voids_dropped_));
  }
  Task<Result<bv::GetUsageResponse>> GetUsage(bv::GetUsageRequest request) override {
    return Ask<GetUsageMethod>(std::move(request));
  }
  Task<Result<bv::GetReceiptResponse>> GetReceipt(bv::GetReceiptRequest request) override {
    return Ask<GetReceiptMethod>(std::move(request));
  }
  Task<Result<bv::StoreAnswerResponse>> StoreAnswer(bv::StoreAnswerRequest request) override {
    return Ask<StoreAnswerMethod>(std::move(request));
  }
  Task<Result<bv::GetAnswerResponse>> GetAnswer(bv::GetAnswerRequest request) override {
    return Ask<GetAnswerMethod>(std::move(request));
  }

 private:
  using Voids = LedgerBatcher<VoidMethod>;

  template <typename Method>
  Task<Result<typename Method::Response>> Ask(typename Method::Request request) {
    return rpc::ReplicaCaller<Method>(loop_, replicas_).Call(std::move(request));
  }

  static Task<void> VoidInBackground(Loop& loop, std::shared_ptr<Voids> voids, bv::VoidItem item,
                                     std::shared_ptr<int> running, prometheus::Counter& dropped) {
    ++*running;
    int64_t deadline_us = SystemClock::Get().MonotonicUs() +
                          (item.refused() ? kRefusalPatience : kVoidPatience) * 1000;
    Backoff backoff(50, 5'000);
    for (;;) {
      auto result = co_await voids->Call(item, kVoidAttemptTimeout);
      if (result.ok()) break;
      if (SystemClock::Get().MonotonicUs() > deadline_us) {
        dropped.Increment();
        break;
      }
      co_await loop.Sleep(backoff.NextMs());
    }
    --*running;
  }

  Loop& loop_;
  const ReplicasPtr replicas_;
  const std::shared_ptr<LedgerBatcher<AuthorizeMethod>> authorizes_;
  const std::shared_ptr<Voids> voids_;
  // Shared by the voids, which may outlive the client.
  std::shared_ptr<int> voids_running_ = std::make_shared<int>(0);
  prometheus::Counter& voids_dropped_ = metrics::Counter(
      "tollgate_gateway_voids_dropped_total",
      "Holds left to expire because too many voids were pending or billing did not answer in "
      "time");
};

class MeteringClientImpl : public MeteringClient {
 public:
  MeteringClientImpl(Loop& loop, ReplicasPtr replicas, const DirectServices& direct)
      : meters_(std::make_shared<LedgerBatcher<MeterMethod>>(loop, replicas, direct.meter)),
        leases_(loop, std::move(replicas), direct.take_lease) {}

  Task<Result<bv::MeterResult>> Meter(bv::MeterOp op, int64_t timeout_ms) override {
    return meters_->Call(std::move(op), timeout_ms);
  }
  // Asks the replica that serves the workspace's other operations first: it knows best whether the
  // workspace is busy.
  Task<Result<bv::TakeLeaseResponse>> TakeLease(bv::TakeLeaseRequest request,
                                                int64_t timeout_ms) override {
    auto first = meters_->ReplicaOf(request.workspace_id());
    return TakeOnce(leases_, std::move(first), std::move(request), timeout_ms);
  }

 private:
  using Leases = rpc::ReplicaCaller<TakeLeaseMethod>;

  static Task<Result<bv::TakeLeaseResponse>> TakeOnce(Leases leases,
                                                      std::shared_ptr<rpc::Replica> first,
                                                      bv::TakeLeaseRequest request,
                                                      int64_t timeout_ms) {
    co_return UnlessUnavailable(
        co_await leases.Call(std::move(request), timeout_ms, std::move(first)));
  }

  const std::shared_ptr<LedgerBatcher<MeterMethod>> meters_;
  const Leases leases_;
};

}  // namespace

std::unique_ptr<BillingClient> MakeBillingClient(Loop& loop, ReplicasPtr replicas,
                                                 const DirectServices* direct) {
  return std::make_unique<BillingClientImpl>(loop, std::move(replicas),
                                             direct != nullptr ? *direct : DirectServices());
}

std::unique_ptr<Subscription> WatchLeaseRecalls(
    Loop& loop, ReplicasPtr replicas, WatchHandler<bv::WatchLeaseRecallsResponse> handler) {
  rpc::WatchOptions<bv::WatchLeaseRecallsRequest, bv::WatchLeaseRecallsResponse> options;
  options.make_request = [] { return bv::WatchLeaseRecallsRequest(); };
  options.on_message = std::move(handler.on_message);
  options.on_lost = std::move(handler.on_lost);
  options.silence_ms = kRecallsSilence;
  using Async = bv::LeaseRecallService::StubInterface::async_interface;
  return std::make_unique<
      WatchSubscription<bv::LeaseRecallService, bv::WatchLeaseRecallsRequest,
                        bv::WatchLeaseRecallsResponse>>(
      loop, std::move(replicas), &Async::WatchLeaseRecalls, std::move(options));
}

std::unique_ptr<MeteringClient> MakeMeteringClient(Loop& loop, ReplicasPtr replicas,
                                                   const DirectServices* direct) {
  return std::make_unique<MeteringClientImpl>(loop, std::move(replicas),
                                              direct != nullptr ? *direct : DirectServices());
}

}  // namespace tollgate
