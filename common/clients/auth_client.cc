#include <grpcpp/channel.h>

#include <algorithm>

#include "common/base/clock.h"
#include "common/clients/make_clients.h"
#include "common/clients/watch_subscription.h"
#include "common/keys/key_filter.h"
#include "common/rpc/replica_caller.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/catalog/v1/catalog.grpc.pb.h"

namespace tollgate {
namespace {

using auth::v1::AuthService;
using auth::v1::ReadVersionRequest;
using auth::v1::ReadVersionResponse;
using auth::v1::ReportKeyUseRequest;
using auth::v1::ReportKeyUseResponse;
using auth::v1::VerifyKeyRequest;
using auth::v1::VerifyKeyResponse;
using auth::v1::WatchKeysRequest;
using auth::v1::WatchKeysResponse;
using catalog::v1::CatalogService;
using catalog::v1::WatchCatalogRequest;
using catalog::v1::WatchCatalogResponse;

// Milliseconds.
constexpr int64_t kKeyReadTimeout = 2'000;
// Auth pings the key stream every second; without a message for this long the stream is lost.
constexpr int64_t kKeysSilence = 4'000;

struct VerifyKeyMethod : rpc::UnaryMethod<AuthService, VerifyKeyRequest, VerifyKeyResponse> {
  static constexpr UnaryPointer kUnary = &Async::VerifyKey;
  static constexpr int64_t kTimeoutMs = 1'000;
};
struct ReadVersionMethod : rpc::UnaryMethod<AuthService, ReadVersionRequest, ReadVersionResponse> {
  static constexpr UnaryPointer kUnary = &Async::ReadVersion;
  static constexpr int64_t kTimeoutMs = 1'000;
};
struct ReportKeyUseMethod
    : rpc::UnaryMethod<AuthService, ReportKeyUseRequest, ReportKeyUseResponse> {
  static constexpr UnaryPointer kUnary = &Async::ReportKeyUse;
  static constexpr rpc::Moves kMoves = rpc::Moves::kNo;
  static constexpr int64_t kTimeoutMs = 5'000;
};

class AuthClientImpl : public AuthClient {
 public:
  AuthClientImpl(Loop& loop, ReplicasPtr replicas) : loop_(loop), replicas_(std::move(replicas)) {}

  Task<Result<VerifyKeyResponse>> VerifyKey(VerifyKeyRequest request) override {
    return Read<VerifyKeyMethod>(loop_, replicas_, std::move(request));
  }
  Task<Result<ReadVersionResponse>> ReadVersion(ReadVersionRequest request) override {
    return Read<ReadVersionMethod>(loop_, replicas_, std::move(request));
  }

  Task<Result<ReportKeyUseResponse>> ReportKeyUse(ReportKeyUseRequest request) override {
    return rpc::ReplicaCaller<ReportKeyUseMethod>(loop_, replicas_).Call(std::move(request));
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
      // Cleared while a newer filter arrives.
      if (message.has_filter_piece()) {
        received->has_filter = message.filter_piece().last();
        received->filter_key_id = FilterKeyId(message.filter_piece().tag_key());
      }
      on_message(std::move(message));
    };
    options.on_lost = std::move(handler.on_lost);
    options.silence_ms = kKeysSilence;
    return std::make_unique<WatchSubscription<AuthService, WatchKeysRequest, WatchKeysResponse>>(
        loop_, replicas_, &Async::WatchKeys, std::move(options));
  }

 private:
  using Async = AuthService::StubInterface::async_interface;

  // Makes two attempts; each may try all replicas.
  template <typename Method>
  static Task<Result<typename Method::Response>> Read(Loop& loop, ReplicasPtr replicas,
                                                      typename Method::Request request) {
    const int64_t deadline_us = SystemClock::Get().MonotonicUs() + kKeyReadTimeout * 1000;
    const rpc::ReplicaCaller<Method> caller(loop, std::move(replicas));
    auto first = co_await caller.Call(request);
    if (first.ok() || first.error().id != ErrorId::kServiceUnavailable) co_return first;
    // Long enough to reconnect.
    co_await loop.Sleep(150);
    const int64_t left_ms = (deadline_us - SystemClock::Get().MonotonicUs()) / 1000;
    co_return co_await caller.Call(std::move(request), left_ms);
  }

  Loop& loop_;
  const ReplicasPtr replicas_;
};

class CatalogClientImpl : public CatalogClient {
 public:
  CatalogClientImpl(Loop& loop, ReplicasPtr replicas)
      : loop_(loop), replicas_(std::move(replicas)) {}

  std::unique_ptr<Subscription> WatchCatalog(EngineKeys keys,
                                             WatchHandler<WatchCatalogResponse> handler) override {
    rpc::WatchOptions<WatchCatalogRequest, WatchCatalogResponse> options;
    options.make_request = [keys] {
      WatchCatalogRequest request;
      request.set_with_engine_keys(keys == EngineKeys::kWith);
      return request;
    };
    options.on_message = std::move(handler.on_message);
    options.on_lost = std::move(handler.on_lost);
    using Async = CatalogService::StubInterface::async_interface;
    return std::make_unique<
        WatchSubscription<CatalogService, WatchCatalogRequest, WatchCatalogResponse>>(
        loop_, replicas_, &Async::WatchCatalog, std::move(options));
  }

 private:
  Loop& loop_;
  const ReplicasPtr replicas_;
};

}  // namespace

std::unique_ptr<AuthClient> MakeAuthClient(Loop& loop, ReplicasPtr replicas) {
  return std::make_unique<AuthClientImpl>(loop, std::move(replicas));
}

std::unique_ptr<CatalogClient> MakeCatalogClient(Loop& loop, ReplicasPtr replicas) {
  return std::make_unique<CatalogClientImpl>(loop, std::move(replicas));
}

}  // namespace tollgate
