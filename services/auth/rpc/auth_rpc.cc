#include "services/auth/rpc/auth_rpc.h"

#include <chrono>
#include <span>

#include "common/base/try.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "common/rpc/server.h"
#include "common/tracing/call_spans.h"

namespace tollgate::auth {
namespace {

constexpr tracing::CallName kVerifyKey{"tollgate.auth", "tollgate.auth.v1.AuthService/VerifyKey"};

// Runs call(store) on a storage thread and responds with its result. `done` receives the result
// first.
template <typename Response, typename Call, typename Done>
grpc::ServerUnaryReactor* RunOnStore(const BackendSlot& slot, grpc::CallbackServerContext* context,
                                     Response* response, Call call, Done done) {
  AuthBackend* const backend = slot.load();
  if (!backend) return rpc::Answer(context, Unavailable("auth is not running"));
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const bool posted = backend->workers().Submit(
      [backend, context, reactor, response, call = std::move(call), done = std::move(done)] {
        if (context->IsCancelled()) {
          // The deadline passed or the client disconnected while the call was queued.
          return reactor->Finish(
              grpc::Status(grpc::StatusCode::CANCELLED, "the call was cancelled by the client"));
        }
        Result<Response> result = call(backend->store());
        done(*backend, result);
        if (result) *response = std::move(*result);
        reactor->Finish(result ? grpc::Status::OK : rpc::ToStatus(result.error()));
      });
  if (!posted) reactor->Finish(rpc::ToStatus(Unavailable("too many calls are queued").error));
  return reactor;
}

// For calls that only read.
template <typename Response, typename Call>
grpc::ServerUnaryReactor* Read(const BackendSlot& slot, grpc::CallbackServerContext* context,
                               Response* response, Call call) {
  return RunOnStore(slot, context, response, std::move(call),
                    [](AuthBackend&, const Result<Response>&) {});
}

prometheus::Counter& VerifyCounter(const char* result) {
  return metrics::Counter("tollgate_auth_verify_total", "Key lookups, by result.",
                          {{"result", result}});
}

}  // namespace

AuthRpc::AuthRpc(const BackendSlot& backend)
    : backend_(backend),
      found_(VerifyCounter("found")),
      unknown_(VerifyCounter("unknown")),
      failed_(VerifyCounter("failed")),
      seconds_(metrics::Histogram("tollgate_auth_verify_seconds",
                                  "Duration of a key lookup, including time in the queue.",
                                  metrics::LatencyBounds())),
      version_reads_(
          metrics::Counter("tollgate_auth_version_reads_total",
                           "Reads of the version by gateways, before they refuse made-up keys.")) {}

grpc::ServerUnaryReactor* AuthRpc::VerifyKey(grpc::CallbackServerContext* context,
                                             const v1::VerifyKeyRequest* request,
                                             v1::VerifyKeyResponse* response) {
  const auto begin = std::chrono::steady_clock::now();
  const auto spans = tracing::BeginCall(kVerifyKey, std::span(request, 1));
  const auto count = [this, begin, spans](const Result<v1::VerifyKeyResponse>& result) {
    EndCall(spans, result ? "" : result.error().row().name);
    (!result ? failed_ : result->found() ? found_ : unknown_).Increment();
    seconds_.Observe(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  };
  // Answer without a storage thread: during an outage all of them may be waiting for the database.
  if (AuthBackend* const backend = backend_.load()) {
    if (auto vouched = backend->store().Vouch(*request)) {
      count(*vouched);
      if (*vouched) *response = std::move(**vouched);
      return rpc::Answer(context, *vouched ? Result<void>() : Fail{vouched->error()});
    }
  }
  return RunOnStore(
      backend_, context, response,
      [request](AuthStore& store) { return store.VerifyKey(*request); },
      [count](AuthBackend&, const Result<v1::VerifyKeyResponse>& result) { count(result); });
}

grpc::ServerWriteReactor<v1::WatchKeysResponse>* AuthRpc::WatchKeys(
    grpc::CallbackServerContext* context, const v1::WatchKeysRequest* request) {
  if (AuthBackend* const backend = backend_.load()) {
    return backend->Watch(*request).get();  // owns itself until OnDone
  }
  const auto stream = WatchStream::Make();
  stream->Close(grpc::Status(grpc::StatusCode::UNAVAILABLE, "auth is not running"));
  return stream.get();
}

grpc::ServerUnaryReactor* AuthRpc::ReadVersion(grpc::CallbackServerContext* context,
                                               const v1::ReadVersionRequest* /*request*/,
                                               v1::ReadVersionResponse* response) {
  version_reads_.Increment();
  return Read(backend_, context, response, [](AuthStore& store) -> Result<v1::ReadVersionResponse> {
    TRY(auto version, store.Version());
    v1::ReadVersionResponse read;
    read.set_version(version);
    return read;
  });
}

grpc::ServerUnaryReactor* AuthRpc::ReportKeyUse(grpc::CallbackServerContext* context,
                                                const v1::ReportKeyUseRequest* request,
                                                v1::ReportKeyUseResponse* response) {
  AuthBackend* const backend = backend_.load();
  if (!backend) return rpc::Answer(context, Unavailable("auth is not running"));
  return RunOnStore(
      backend_, context, response,
      [request, backend](AuthStore& store) { return StoreUse(store, backend->policy(), *request); },
      // The policy may have disabled a key.
      [](AuthBackend& backend, const Result<v1::ReportKeyUseResponse>&) { backend.feed().Wake(); });
}

}  // namespace tollgate::auth
