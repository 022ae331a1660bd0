#include <grpcpp/channel.h>

#include <algorithm>

#include "common/base/clock.h"
#include "common/clients/backoff.h"
#include "common/clients/ledger_batcher.h"
#include "common/clients/make_clients.h"
#include "common/clients/transport.h"
#include "common/observability/metrics.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate {
namespace {

using billing::v1::AuthorizeItem;
using billing::v1::AuthorizeRequest;
using billing::v1::AuthorizeResponse;
using billing::v1::AuthorizeResult;
using billing::v1::BillingService;
using billing::v1::GetAnswerRequest;
using billing::v1::GetAnswerResponse;
using billing::v1::GetReceiptRequest;
using billing::v1::GetReceiptResponse;
using billing::v1::GetUsageRequest;
using billing::v1::GetUsageResponse;
using billing::v1::MeteringService;
using billing::v1::MeterOp;
using billing::v1::MeterRequest;
using billing::v1::MeterResponse;
using billing::v1::MeterResult;
using billing::v1::StoreAnswerRequest;
using billing::v1::StoreAnswerResponse;
using billing::v1::TakeLeaseRequest;
using billing::v1::TakeLeaseResponse;
using billing::v1::VoidItem;
using billing::v1::VoidRequest;
using billing::v1::VoidResponse;
using BillingAsync = BillingService::StubInterface::async_interface;
using MeteringAsync = MeteringService::StubInterface::async_interface;

// In milliseconds.
constexpr int64_t kVoidAttemptTimeout = 2'000;
// The hold has expired by then.
constexpr int64_t kVoidPatience = 90'000;
// The void of a refused request also reverses what was charged meanwhile (decision 52), so it is
// retried through a longer outage.
constexpr int64_t kRefusalPatience = 600'000;
// Limit of pending voids per client. While billing is unreachable each refused request adds one.
// Beyond the limit holds are left to expire.
constexpr int kMaxVoids = 32'768;
constexpr int64_t kUsageTimeout = 5'000;
// Callers wait for these.
constexpr int64_t kStoreAnswerTimeout = 1'000;
constexpr int64_t kGetAnswerTimeout = 3'000;

// DENY_REASON_UNAVAILABLE means "ask again". Callers treat it like an unreachable ledger.
template <typename Reply>
Result<Reply> UnlessUnavailable(Result<Reply> result) {
  if (result.ok() && result->denied_by() == billing::v1::DENY_REASON_UNAVAILABLE) {
    return Unavailable("billing: the ledger of this workspace cannot be written at the moment");
  }
  return result;
}

// Sends the items as one message and returns the results.
template <typename Request, typename Response, typename Item, typename Reply>
Task<Result<std::vector<Reply>>> SendBatch(TransportTo<Request, Response> transport,
                                           ItemsOf<Request, Item> field,
                                           std::shared_ptr<rpc::Replicas> replicas,
                                           std::shared_ptr<rpc::Replica> first,
                                           std::vector<Item> items, int64_t timeout_ms) {
  co_return TakeResults<Response, Reply>(
      co_await transport(std::move(replicas), std::move(first),
                         BatchRequest<Request, Item>(field, std::move(items)), timeout_ms));
}

// Batches of one kind of call to billing, over gRPC…
template <typename Reply, typename Request, typename Response, typename Item>
std::shared_ptr<LedgerBatcher<Item, Reply>> MakeBatcher(Loop& loop, ReplicasPtr replicas,
                                                        TransportTo<Request, Response> transport,
                                                        ItemsOf<Request, Item> field) {
  return std::make_shared<LedgerBatcher<Item, Reply>>(
      loop, std::move(replicas),
      [transport = std::move(transport), field](std::shared_ptr<rpc::Replicas> of,
                                                std::shared_ptr<rpc::Replica> first,
                                                std::vector<Item> items, int64_t timeout_ms) {
        return SendBatch<Request, Response, Item, Reply>(
            transport, field, std::move(of), std::move(first), std::move(items), timeout_ms);
      });
}
// … or within the process.
template <typename Reply, typename Request, typename Response, typename Item>
std::shared_ptr<LedgerBatcher<Item, Reply>> MakeBatcher(Loop& loop,
                                                        DirectCall<Request, Response> call,
                                                        ItemsOf<Request, Item> field) {
  using Batches = Batcher<Item, Reply>;
  return std::make_shared<LedgerBatcher<Item, Reply>>(
      loop, std::make_shared<Batches>(loop, DirectBatch<Reply>(std::move(call), field),
                                      Batches::When::kEndOfTurn));
}

// Reports that the owner of a key may read.
struct ReportTransports {
  Transport<GetUsageRequest, GetUsageResponse> usage;
  Transport<GetReceiptRequest, GetReceiptResponse> receipt;
};
struct AnswerTransports {
  Transport<StoreAnswerRequest, StoreAnswerResponse> store;
  Transport<GetAnswerRequest, GetAnswerResponse> get;
};

class BillingClientImpl : public BillingClient {
 public:
  using Authorizes = LedgerBatcher<AuthorizeItem, AuthorizeResult>;
  using Voids = LedgerBatcher<VoidItem, MeterResult>;

  BillingClientImpl(Loop& loop, std::shared_ptr<Authorizes> authorizes,
                    std::shared_ptr<Voids> voids, ReportTransports reports,
                    AnswerTransports answers)
      : loop_(loop),
        reports_(std::move(reports)),
        answers_(std::move(answers)),
        authorizes_(std::move(authorizes)),
        voids_(std::move(voids)) {}

  Task<Result<AuthorizeResult>> Authorize(AuthorizeItem item, int64_t timeout_ms) override {
    return AuthorizeOnce(authorizes_, std::move(item), timeout_ms);
  }
  void Void(VoidItem item) override {
    if (*voids_running_ >= kMaxVoids) return voids_dropped_.Increment();
    loop_.Spawn(VoidInBackground(loop_, voids_, std::move(item), voids_running_, voids_dropped_));
  }
  Task<Result<GetUsageResponse>> GetUsage(GetUsageRequest request) override {
    return reports_.usage(std::move(request), kUsageTimeout);
  }
  Task<Result<GetReceiptResponse>> GetReceipt(GetReceiptRequest request) override {
    return reports_.receipt(std::move(request), kUsageTimeout);
  }
  Task<Result<StoreAnswerResponse>> StoreAnswer(StoreAnswerRequest request) override {
    return answers_.store(std::move(request), kStoreAnswerTimeout);
  }
  Task<Result<GetAnswerResponse>> GetAnswer(GetAnswerRequest request) override {
    return answers_.get(std::move(request), kGetAnswerTimeout);
  }

 private:
  static Task<Result<AuthorizeResult>> AuthorizeOnce(std::shared_ptr<Authorizes> authorizes,
                                                     AuthorizeItem item, int64_t timeout_ms) {
    const auto place = authorizes->For(item);
    co_return UnlessUnavailable(co_await place->Call(std::move(item), timeout_ms));
  }

  static Task<void> VoidInBackground(Loop& loop, std::shared_ptr<Voids> voids, VoidItem item,
                                     std::shared_ptr<int> running, prometheus::Counter& dropped) {
    ++*running;
    int64_t deadline_us = SystemClock::Get().MonotonicUs() +
                          (item.refused() ? kRefusalPatience : kVoidPatience) * 1000;
    Backoff backoff(50, 5'000);
    for (;;) {
      auto result = UnlessUnavailable(co_await voids->For(item)->Call(item, kVoidAttemptTimeout));
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
  ReportTransports reports_;
  AnswerTransports answers_;
  std::shared_ptr<Authorizes> authorizes_;
  std::shared_ptr<Voids> voids_;
  // Shared by the voids, which may outlive the client.
  std::shared_ptr<int> voids_running_ = std::make_shared<int>(0);
  prometheus::Counter& voids_dropped_ = metrics::Counter(
      "tollgate_gateway_voids_dropped_total",
      "Holds left to expire because too many voids were pending or billing did not answer in "
      "time");
};

class MeteringClientImpl : public MeteringClient {
 public:
  using Meters = LedgerBatcher<MeterOp, MeterResult>;

  MeteringClientImpl(std::shared_ptr<Meters> meters,
                     Transport<TakeLeaseRequest, TakeLeaseResponse> leases)
      : meters_(std::move(meters)), leases_(std::move(leases)) {}

  Task<Result<MeterResult>> Meter(MeterOp op, int64_t timeout_ms) override {
    const auto place = meters_->For(op);
    co_return UnlessUnavailable(co_await place->Call(std::move(op), timeout_ms));
  }

  Task<Result<TakeLeaseResponse>> TakeLease(TakeLeaseRequest request, int64_t timeout_ms) override {
    return TakeOnce(leases_, std::move(request), timeout_ms);
  }

 private:
  static Task<Result<TakeLeaseResponse>> TakeOnce(
      Transport<TakeLeaseRequest, TakeLeaseResponse> leases, TakeLeaseRequest request,
      int64_t timeout_ms) {
    co_return UnlessUnavailable(co_await leases(std::move(request), timeout_ms));
  }

  const std::shared_ptr<Meters> meters_;
  const Transport<TakeLeaseRequest, TakeLeaseResponse> leases_;
};

// Asks the replica that serves the workspace's other operations first: it knows best whether the
// workspace is busy.
Transport<TakeLeaseRequest, TakeLeaseResponse> LeasesBeside(
    Loop& loop, ReplicasPtr replicas, std::shared_ptr<MeteringClientImpl::Meters> meters) {
  return [&loop, replicas = std::move(replicas), meters = std::move(meters)](
             TakeLeaseRequest request, int64_t timeout_ms) {
    using Method =
        rpc::UnaryMethod<MeteringService, MeteringAsync, TakeLeaseRequest, TakeLeaseResponse>;
    auto first = meters->ReplicaOf(request.workspace_id());
    return rpc::CallAny(loop, replicas, Method{&MeteringAsync::TakeLease}, std::move(request),
                        timeout_ms, rpc::Moves::kYes, std::move(first));
  };
}

}  // namespace

std::unique_ptr<BillingClient> MakeBillingClient(Loop& loop, ReplicasPtr replicas,
                                                 const DirectServices* direct) {
  ReportTransports reports{Over<BillingService>(loop, replicas, &BillingAsync::GetUsage),
                           Over<BillingService>(loop, replicas, &BillingAsync::GetReceipt)};
  AnswerTransports answers{Over<BillingService>(loop, replicas, &BillingAsync::StoreAnswer),
                           Over<BillingService>(loop, replicas, &BillingAsync::GetAnswer)};
  const bool is_direct = direct != nullptr && direct->authorize && direct->void_holds;
  const ItemsOf<AuthorizeRequest, AuthorizeItem> authorize = &AuthorizeRequest::mutable_items;
  const ItemsOf<VoidRequest, VoidItem> void_holds = &VoidRequest::mutable_items;
  return std::make_unique<BillingClientImpl>(
      loop,
      is_direct ? MakeBatcher<AuthorizeResult>(loop, direct->authorize, authorize)
                : MakeBatcher<AuthorizeResult>(
                      loop, replicas,
                      OverStreamTo<BillingService>(loop, &BillingAsync::Authorize,
                                                   &BillingAsync::AuthorizeCalls),
                      authorize),
      is_direct ? MakeBatcher<MeterResult>(loop, direct->void_holds, void_holds)
                : MakeBatcher<MeterResult>(loop, replicas,
                                           OverStreamTo<BillingService>(loop, &BillingAsync::Void,
                                                                        &BillingAsync::VoidCalls),
                                           void_holds),
      std::move(reports), std::move(answers));
}

std::unique_ptr<MeteringClient> MakeMeteringClient(Loop& loop, ReplicasPtr replicas,
                                                   const DirectServices* direct) {
  const ItemsOf<MeterRequest, MeterOp> ops = &MeterRequest::mutable_ops;
  if (direct != nullptr && direct->meter) {
    return std::make_unique<MeteringClientImpl>(MakeBatcher<MeterResult>(loop, direct->meter, ops),
                                                Over(loop, direct->take_lease));
  }
  auto meters = MakeBatcher<MeterResult>(
      loop, replicas,
      OverStreamTo<MeteringService>(loop, &MeteringAsync::Meter, &MeteringAsync::MeterCalls), ops);
  auto leases = LeasesBeside(loop, std::move(replicas), meters);
  return std::make_unique<MeteringClientImpl>(std::move(meters), std::move(leases));
}

}  // namespace tollgate
