#include <grpcpp/channel.h>

#include <algorithm>

#include "common/base/clock.h"
#include "common/clients/backoff.h"
#include "common/clients/batcher.h"
#include "common/clients/make_clients.h"
#include "common/rpc/call.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate {
namespace {

using billing::v1::AuthorizeItem;
using billing::v1::AuthorizeRequest;
using billing::v1::AuthorizeResult;
using billing::v1::BillingService;
using billing::v1::GetUsageRequest;
using billing::v1::GetUsageResponse;
using billing::v1::MeteringService;
using billing::v1::MeterOp;
using billing::v1::MeterRequest;
using billing::v1::MeterResult;
using billing::v1::VoidItem;
using billing::v1::VoidRequest;
using BillingAsync = BillingService::StubInterface::async_interface;
using MeteringAsync = MeteringService::StubInterface::async_interface;

// Milliseconds. New work fails closed after two seconds (reliability.md section 2).
constexpr int64_t kAuthorizeTimeout = 2'000;
constexpr int64_t kAuthorizeAttemptTimeout = 1'000;
constexpr int64_t kVoidAttemptTimeout = 2'000;
// By then the hold has expired by itself.
constexpr int64_t kVoidPatience = 90'000;
constexpr int64_t kUsageTimeout = 5'000;

// Moves the results of a batch out of its response.
template <typename Response, typename Reply>
Result<std::vector<Reply>> TakeResults(Result<Response> response) {
  if (!response.ok()) return Fail{std::move(response).error()};
  auto& results = *response->mutable_results();
  return std::vector<Reply>(std::make_move_iterator(results.begin()),
                            std::make_move_iterator(results.end()));
}

class BillingClientImpl : public BillingClient {
 public:
  using StubPtr = std::shared_ptr<BillingService::Stub>;
  using Authorizes = Batcher<AuthorizeItem, AuthorizeResult>;
  using Voids = Batcher<VoidItem, MeterResult>;

  BillingClientImpl(Loop& loop, const ChannelPtr& channel)
      : loop_(loop), stub_(BillingService::NewStub(channel)) {
    authorizes_ = std::make_shared<Authorizes>(
        loop, [&loop, stub = stub_](std::vector<AuthorizeItem> items, int64_t timeout_ms) {
          return SendAuthorize(loop, stub, std::move(items), timeout_ms);
        });
    voids_ = std::make_shared<Voids>(
        loop, [&loop, stub = stub_](std::vector<VoidItem> items, int64_t timeout_ms) {
          return SendVoid(loop, stub, std::move(items), timeout_ms);
        });
  }

  Task<Result<AuthorizeResult>> Authorize(AuthorizeItem item) override {
    return AuthorizeWithRetries(loop_, authorizes_, std::move(item));
  }
  void Void(VoidItem item) override {
    loop_.Spawn(VoidInBackground(loop_, voids_, std::move(item)));
  }
  Task<Result<GetUsageResponse>> GetUsage(GetUsageRequest request) override {
    auto stub = stub_;
    co_return co_await rpc::Unary(loop_, stub->async(), &BillingAsync::GetUsage,
                                  std::move(request), kUsageTimeout);
  }

 private:
  static Task<Result<std::vector<AuthorizeResult>>> SendAuthorize(Loop& loop, StubPtr stub,
                                                                  std::vector<AuthorizeItem> items,
                                                                  int64_t timeout_ms) {
    AuthorizeRequest request;
    for (AuthorizeItem& item : items) *request.add_items() = std::move(item);
    co_return TakeResults<billing::v1::AuthorizeResponse, AuthorizeResult>(co_await rpc::Unary(
        loop, stub->async(), &BillingAsync::Authorize, std::move(request), timeout_ms));
  }

  static Task<Result<std::vector<MeterResult>>> SendVoid(Loop& loop, StubPtr stub,
                                                         std::vector<VoidItem> items,
                                                         int64_t timeout_ms) {
    VoidRequest request;
    for (VoidItem& item : items) *request.add_items() = std::move(item);
    co_return TakeResults<billing::v1::VoidResponse, MeterResult>(co_await rpc::Unary(
        loop, stub->async(), &BillingAsync::Void, std::move(request), timeout_ms));
  }

  // The same id each time: an answer that was lost is given again, nothing is held twice.
  static Task<Result<AuthorizeResult>> AuthorizeWithRetries(Loop& loop,
                                                            std::shared_ptr<Authorizes> authorizes,
                                                            AuthorizeItem item) {
    int64_t deadline_us = SystemClock::Get().MonotonicUs() + kAuthorizeTimeout * 1000;
    Backoff backoff(50, 400);
    for (int64_t left_ms = kAuthorizeTimeout;;) {
      auto result = co_await authorizes->Call(item, std::min(left_ms, kAuthorizeAttemptTimeout));
      if (result.ok() || result.error().id != ErrorId::kServiceUnavailable) co_return result;
      int64_t wait_ms = backoff.NextMs();
      left_ms = (deadline_us - SystemClock::Get().MonotonicUs()) / 1000 - wait_ms;
      if (left_ms <= 0) co_return result;
      co_await loop.Sleep(wait_ms);
    }
  }

  static Task<void> VoidInBackground(Loop& loop, std::shared_ptr<Voids> voids, VoidItem item) {
    int64_t deadline_us = SystemClock::Get().MonotonicUs() + kVoidPatience * 1000;
    Backoff backoff(50, 5'000);
    for (;;) {
      auto result = co_await voids->Call(item, kVoidAttemptTimeout);
      if (result.ok() || SystemClock::Get().MonotonicUs() > deadline_us) co_return;
      co_await loop.Sleep(backoff.NextMs());
    }
  }

  Loop& loop_;
  StubPtr stub_;
  std::shared_ptr<Authorizes> authorizes_;
  std::shared_ptr<Voids> voids_;
};

class MeteringClientImpl : public MeteringClient {
 public:
  using StubPtr = std::shared_ptr<MeteringService::Stub>;

  MeteringClientImpl(Loop& loop, const ChannelPtr& channel)
      : stub_(MeteringService::NewStub(channel)) {
    meters_ = std::make_shared<Batcher<MeterOp, MeterResult>>(
        loop, [&loop, stub = stub_](std::vector<MeterOp> ops, int64_t timeout_ms) {
          return SendMeter(loop, stub, std::move(ops), timeout_ms);
        });
  }

  Task<Result<MeterResult>> Meter(MeterOp op, int64_t timeout_ms) override {
    return meters_->Call(std::move(op), timeout_ms);
  }

 private:
  static Task<Result<std::vector<MeterResult>>> SendMeter(Loop& loop, StubPtr stub,
                                                          std::vector<MeterOp> ops,
                                                          int64_t timeout_ms) {
    MeterRequest request;
    for (MeterOp& op : ops) *request.add_ops() = std::move(op);
    co_return TakeResults<billing::v1::MeterResponse, MeterResult>(co_await rpc::Unary(
        loop, stub->async(), &MeteringAsync::Meter, std::move(request), timeout_ms));
  }

  StubPtr stub_;
  std::shared_ptr<Batcher<MeterOp, MeterResult>> meters_;
};

}  // namespace

std::unique_ptr<BillingClient> MakeBillingClient(Loop& loop, ChannelPtr channel) {
  return std::make_unique<BillingClientImpl>(loop, channel);
}

std::unique_ptr<MeteringClient> MakeMeteringClient(Loop& loop, ChannelPtr channel) {
  return std::make_unique<MeteringClientImpl>(loop, channel);
}

}  // namespace tollgate
