#include "services/ratelimit/rpc/ratelimit_rpc.h"

#include <vector>

#include "common/observability/metrics.h"

namespace tollgate::ratelimit {
namespace {

Limits FromProto(const v1::SubjectLimits& limits) {
  return {.requests_per_minute = limits.requests_per_minute(),
          .tokens_per_minute = limits.tokens_per_minute(),
          .concurrent_requests = limits.concurrent_requests()};
}

void ToProto(const Status& status, v1::LimitStatus& into) {
  into.set_limit(status.limit);
  into.set_remaining(status.remaining);
  into.set_reset_ms(status.reset_ms);
}

grpc::Status BadLease() {
  return {grpc::StatusCode::INVALID_ARGUMENT, "a lease id must be 16 bytes and not zero"};
}

std::optional<Id> LeaseOf(const std::string& bytes) {
  auto id = Id::FromBytes(bytes);
  if (id && id->empty()) id.reset();
  return id;
}

prometheus::Counter& AcquireCounter(const char* result) {
  return metrics::Counter("tollgate_ratelimit_acquires_total", "Admission requests, by result.",
                          {{"result", result}});
}

prometheus::Counter& ReleaseCounter(const char* kind) {
  return metrics::Counter("tollgate_ratelimit_releases_total", "Released leases, by kind.",
                          {{"kind", kind}});
}

grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

}  // namespace

RateLimitRpc::RateLimitRpc(LimiterStore& store)
    : store_(store),
      acquired_{&AcquireCounter("granted"), &AcquireCounter("requests"),
                &AcquireCounter("concurrency"), &AcquireCounter("tokens")},
      settled_(ReleaseCounter("settled")),
      refunded_(ReleaseCounter("refunded")),
      unknown_(ReleaseCounter("unknown")) {}

grpc::Status RateLimitRpc::DoAcquire(const v1::AcquireRequest& request,
                                     v1::AcquireResponse& response) {
  // Validated first: an invalid message must take nothing.
  for (const v1::AcquireItem& item : request.items()) {
    if (!LeaseOf(item.lease_id())) return BadLease();
  }
  for (const v1::AcquireItem& item : request.items()) {
    const AcquireOutcome outcome =
        store_.Acquire({.lease = *LeaseOf(item.lease_id()),
                        .workspace_id = item.workspace_id(),
                        .key_id = item.key_id(),
                        .key_limits = FromProto(item.key_limits()),
                        .workspace_limits = FromProto(item.workspace_limits()),
                        .estimated_tokens = item.estimated_tokens()});
    acquired_[static_cast<int>(outcome.denied_by)]->Increment();
    v1::AcquireResult& result = *response.add_results();
    result.set_granted(outcome.granted());
    // Kind and v1::LimitKind have the same values.
    result.set_denied_by(static_cast<v1::LimitKind>(outcome.denied_by));
    result.set_retry_after_ms(outcome.retry_after_ms);
    ToProto(outcome.requests, *result.mutable_requests());
    ToProto(outcome.tokens, *result.mutable_tokens());
  }
  return grpc::Status::OK;
}

grpc::Status RateLimitRpc::DoRelease(const v1::ReleaseRequest& request) {
  for (const v1::ReleaseItem& item : request.items()) {
    const auto lease = LeaseOf(item.lease_id());
    const bool known =
        lease && store_.Release(item.workspace_id(), *lease, item.actual_tokens(), item.refund());
    (!known ? unknown_ : item.refund() ? refunded_ : settled_).Increment();
  }
  return grpc::Status::OK;
}

grpc::Status RateLimitRpc::DoRenew(const v1::RenewRequest& request) {
  std::vector<Id> leases;
  leases.reserve(request.lease_ids_size());
  for (const std::string& bytes : request.lease_ids()) {
    if (const auto lease = LeaseOf(bytes)) leases.push_back(*lease);
  }
  store_.Renew(leases);
  return grpc::Status::OK;
}

grpc::Status RateLimitRpc::DoPeek(const v1::PeekRequest& request, v1::PeekResponse& response) {
  const PeekOutcome outcome =
      store_.Peek(request.workspace_id(), request.key_id(), FromProto(request.key_limits()),
                  FromProto(request.workspace_limits()));
  ToProto(outcome.requests, *response.mutable_requests());
  ToProto(outcome.tokens, *response.mutable_tokens());
  ToProto(outcome.concurrency, *response.mutable_concurrency());
  return grpc::Status::OK;
}

grpc::ServerUnaryReactor* RateLimitRpc::Acquire(grpc::CallbackServerContext* context,
                                                const v1::AcquireRequest* request,
                                                v1::AcquireResponse* response) {
  return Finish(context, DoAcquire(*request, *response));
}

grpc::ServerUnaryReactor* RateLimitRpc::Release(grpc::CallbackServerContext* context,
                                                const v1::ReleaseRequest* request,
                                                v1::ReleaseResponse* response) {
  return Finish(context, DoRelease(*request));
}

grpc::ServerUnaryReactor* RateLimitRpc::Renew(grpc::CallbackServerContext* context,
                                              const v1::RenewRequest* request,
                                              v1::RenewResponse* response) {
  return Finish(context, DoRenew(*request));
}

grpc::ServerUnaryReactor* RateLimitRpc::Peek(grpc::CallbackServerContext* context,
                                             const v1::PeekRequest* request,
                                             v1::PeekResponse* response) {
  return Finish(context, DoPeek(*request, *response));
}

}  // namespace tollgate::ratelimit
