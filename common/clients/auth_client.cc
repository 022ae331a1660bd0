#include <grpcpp/channel.h>

#include <algorithm>

#include "common/base/clock.h"
#include "common/clients/make_clients.h"
#include "common/rpc/call.h"
#include "common/rpc/watch.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/catalog/v1/catalog.grpc.pb.h"

namespace tollgate {
namespace {

using auth::v1::AuthService;
using auth::v1::VerifyKeyRequest;
using auth::v1::VerifyKeyResponse;
using auth::v1::WatchKeysRequest;
using auth::v1::WatchKeysResponse;
using catalog::v1::CatalogService;
using catalog::v1::WatchCatalogRequest;
using catalog::v1::WatchCatalogResponse;

// Milliseconds.
constexpr int64_t kVerifyTimeout = 2'000;
constexpr int64_t kVerifyAttemptTimeout = 1'000;
// Auth pings the key stream every second; without a message for this long the stream is lost.
constexpr int64_t kKeysSilence = 4'000;

template <typename Request, typename Message>
class WatchSubscription : public Subscription {
 public:
  WatchSubscription(Loop& loop, rpc::WatchOptions<Request, Message> options)
      : watch_(loop, std::move(options)) {}

 private:
  rpc::Watch<Request, Message> watch_;
};

class AuthClientImpl : public AuthClient {
 public:
  AuthClientImpl(Loop& loop, const ChannelPtr& channel)
      : loop_(loop), stub_(AuthService::NewStub(channel)) {}

  Task<Result<VerifyKeyResponse>> VerifyKey(VerifyKeyRequest request) override {
    // The client may be destroyed while a call runs; the stub must stay alive.
    auto stub = stub_;
    Loop& loop = loop_;
    int64_t deadline_us = SystemClock::Get().MonotonicUs() + kVerifyTimeout * 1000;
    auto first = co_await rpc::Unary(loop, stub->async(),
                                     &AuthService::StubInterface::async_interface::VerifyKey,
                                     request, kVerifyAttemptTimeout);
    if (first.ok() || first.error().id != ErrorId::kServiceUnavailable) co_return first;
    // Long enough to reconnect.
    co_await loop.Sleep(150);
    int64_t left_ms = (deadline_us - SystemClock::Get().MonotonicUs()) / 1000;
    co_return co_await rpc::Unary(loop, stub->async(),
                                  &AuthService::StubInterface::async_interface::VerifyKey,
                                  std::move(request), left_ms);
  }

  std::unique_ptr<Subscription> WatchKeys(WatchHandler<WatchKeysResponse> handler) override {
    // A reopened stream continues after the last version received.
    auto version = std::make_shared<int64_t>(0);
    rpc::WatchOptions<WatchKeysRequest, WatchKeysResponse> options;
    options.open = [stub = stub_](grpc::ClientContext* context, const WatchKeysRequest* request,
                                  grpc::ClientReadReactor<WatchKeysResponse>* reactor) {
      stub->async()->WatchKeys(context, request, reactor);
    };
    options.make_request = [version] {
      WatchKeysRequest request;
      request.set_after_version(*version);
      return request;
    };
    options.on_message = [version,
                          on_message = std::move(handler.on_message)](WatchKeysResponse message) {
      *version = message.reset() ? message.version() : std::max(*version, message.version());
      on_message(std::move(message));
    };
    options.on_lost = std::move(handler.on_lost);
    options.silence_ms = kKeysSilence;
    return std::make_unique<WatchSubscription<WatchKeysRequest, WatchKeysResponse>>(
        loop_, std::move(options));
  }

 private:
  Loop& loop_;
  std::shared_ptr<AuthService::Stub> stub_;
};

class CatalogClientImpl : public CatalogClient {
 public:
  CatalogClientImpl(Loop& loop, const ChannelPtr& channel)
      : loop_(loop), stub_(CatalogService::NewStub(channel)) {}

  std::unique_ptr<Subscription> WatchCatalog(WatchHandler<WatchCatalogResponse> handler) override {
    rpc::WatchOptions<WatchCatalogRequest, WatchCatalogResponse> options;
    options.open = [stub = stub_](grpc::ClientContext* context, const WatchCatalogRequest* request,
                                  grpc::ClientReadReactor<WatchCatalogResponse>* reactor) {
      stub->async()->WatchCatalog(context, request, reactor);
    };
    options.make_request = [] { return WatchCatalogRequest(); };
    options.on_message = std::move(handler.on_message);
    options.on_lost = std::move(handler.on_lost);
    return std::make_unique<WatchSubscription<WatchCatalogRequest, WatchCatalogResponse>>(
        loop_, std::move(options));
  }

 private:
  Loop& loop_;
  std::shared_ptr<CatalogService::Stub> stub_;
};

}  // namespace

std::unique_ptr<AuthClient> MakeAuthClient(Loop& loop, ChannelPtr channel) {
  return std::make_unique<AuthClientImpl>(loop, channel);
}

std::unique_ptr<CatalogClient> MakeCatalogClient(Loop& loop, ChannelPtr channel) {
  return std::make_unique<CatalogClientImpl>(loop, channel);
}

}  // namespace tollgate
