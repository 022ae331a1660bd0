#include <grpcpp/channel.h>

#include <algorithm>

#include "common/base/clock.h"
#include "common/clients/make_clients.h"
#include "common/keys/key_filter.h"
#include "common/rpc/call.h"
#include "common/rpc/watch.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/catalog/v1/catalog.grpc.pb.h"

namespace tollgate {
namespace {

using auth::v1::AuthService;
using auth::v1::ReadVersionRequest;
using auth::v1::ReadVersionResponse;
using auth::v1::VerifyKeyRequest;
using auth::v1::VerifyKeyResponse;
using auth::v1::WatchKeysRequest;
using auth::v1::WatchKeysResponse;
using catalog::v1::CatalogService;
using catalog::v1::WatchCatalogRequest;
using catalog::v1::WatchCatalogResponse;

// Milliseconds.
constexpr int64_t kReadTimeout = 2'000;
constexpr int64_t kReadAttemptTimeout = 1'000;
constexpr int64_t kReportTimeout = 5'000;
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
    return Read(loop_, stub_, &Async::VerifyKey, std::move(request));
  }
  Task<Result<ReadVersionResponse>> ReadVersion(ReadVersionRequest request) override {
    return Read(loop_, stub_, &Async::ReadVersion, std::move(request));
  }

  Task<Result<auth::v1::ReportKeyUseResponse>> ReportKeyUse(
      auth::v1::ReportKeyUseRequest request) override {
    return rpc::Unary(loop_, stub_->async(), &Async::ReportKeyUse, std::move(request),
                      kReportTimeout);
  }

  std::unique_ptr<Subscription> WatchKeys(WatchHandler<WatchKeysResponse> handler) override {
    // A reopened stream continues after the last version received, with the filter that is complete
    // up to there.
    struct Received {
      int64_t version = 0;
      bool has_filter = false;
      uint64_t filter_key_id = 0;
    };
    auto received = std::make_shared<Received>();
    rpc::WatchOptions<WatchKeysRequest, WatchKeysResponse> options;
    options.open = [stub = stub_](grpc::ClientContext* context, const WatchKeysRequest* request,
                                  grpc::ClientReadReactor<WatchKeysResponse>* reactor) {
      stub->async()->WatchKeys(context, request, reactor);
    };
    options.make_request = [received] {
      WatchKeysRequest request;
      request.set_after_version(received->version);
      request.set_takes_filter(true);
      request.set_has_filter(received->has_filter);
      request.set_filter_key_id(received->filter_key_id);
      return request;
    };
    options.on_message = [received,
                          on_message = std::move(handler.on_message)](WatchKeysResponse message) {
      received->version =
          message.reset() ? message.version() : std::max(received->version, message.version());
      if (message.reset()) received->has_filter = false;
      // False as well while a newer filter arrives.
      if (message.has_filter_piece()) {
        received->has_filter = message.filter_piece().last();
        received->filter_key_id = FilterKeyId(message.filter_piece().tag_key());
      }
      on_message(std::move(message));
    };
    options.on_lost = std::move(handler.on_lost);
    options.silence_ms = kKeysSilence;
    return std::make_unique<WatchSubscription<WatchKeysRequest, WatchKeysResponse>>(
        loop_, std::move(options));
  }

 private:
  using Async = AuthService::StubInterface::async_interface;

  // Two attempts. The client may be destroyed while a call runs; the stub must stay alive.
  template <typename Request, typename Response>
  static Task<Result<Response>> Read(Loop& loop, std::shared_ptr<AuthService::Stub> stub,
                                     void (Async::*method)(grpc::ClientContext*, const Request*,
                                                           Response*,
                                                           std::function<void(grpc::Status)>),
                                     Request request) {
    const int64_t deadline_us = SystemClock::Get().MonotonicUs() + kReadTimeout * 1000;
    auto first = co_await rpc::Unary(loop, stub->async(), method, request, kReadAttemptTimeout);
    if (first.ok() || first.error().id != ErrorId::kServiceUnavailable) co_return first;
    // Long enough to reconnect.
    co_await loop.Sleep(150);
    const int64_t left_ms = (deadline_us - SystemClock::Get().MonotonicUs()) / 1000;
    co_return co_await rpc::Unary(loop, stub->async(), method, std::move(request), left_ms);
  }

  Loop& loop_;
  std::shared_ptr<AuthService::Stub> stub_;
};

class CatalogClientImpl : public CatalogClient {
 public:
  CatalogClientImpl(Loop& loop, const ChannelPtr& channel)
      : loop_(loop), stub_(CatalogService::NewStub(channel)) {}

  std::unique_ptr<Subscription> WatchCatalog(EngineKeys keys,
                                             WatchHandler<WatchCatalogResponse> handler) override {
    rpc::WatchOptions<WatchCatalogRequest, WatchCatalogResponse> options;
    options.open = [stub = stub_](grpc::ClientContext* context, const WatchCatalogRequest* request,
                                  grpc::ClientReadReactor<WatchCatalogResponse>* reactor) {
      stub->async()->WatchCatalog(context, request, reactor);
    };
    options.make_request = [keys] {
      WatchCatalogRequest request;
      request.set_with_engine_keys(keys == EngineKeys::kWith);
      return request;
    };
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
