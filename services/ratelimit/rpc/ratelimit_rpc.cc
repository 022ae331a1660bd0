#include "services/ratelimit/rpc/ratelimit_rpc.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "common/observability/metrics.h"
#include "common/tracing/call_spans.h"
#include "services/ratelimit/rpc/claims.h"

namespace tollgate::ratelimit {
namespace {

constexpr tracing::CallName kAcquire{"tollgate.ratelimit",
                                     "tollgate.ratelimit.v1.RateLimitService/Acquire"};

void ToProto(const Status& status, v1::LimitStatus& into) {
  into.set_limit(status.limit);
  into.set_remaining(status.remaining);
  into.set_reset_ms(status.reset_ms);
}

grpc::Status BadSlot() {
  return {grpc::StatusCode::INVALID_ARGUMENT, "a slot id must be 16 bytes and not zero"};
}

std::optional<Id> SlotOf(const std::string& bytes) {
  auto id = Id::FromBytes(bytes);
  if (id && id->empty()) id.reset();
  return id;
}

prometheus::Counter& AcquireCounter(const char* result) {
  return metrics::Counter("tollgate_ratelimit_acquires_total", "Admission requests, by result.",
                          {{"result", result}});
}

prometheus::Counter& ShadowCounter(const char* limit) {
  return metrics::Counter("tollgate_ratelimit_shadow_refusals_total",
                          "Requests that a limit in shadow mode would have refused, by limit.",
                          {{"limit", limit}});
}

prometheus::Counter& ReleaseCounter(const char* kind) {
  return metrics::Counter("tollgate_ratelimit_releases_total", "Released slots, by kind.",
                          {{"kind", kind}});
}

// Ends a call when all its parts have ended, with the first failure.
class Parts : public std::enable_shared_from_this<Parts> {
 public:
  Parts(int count, RateLimitRpc::Done done) : left_(count), done_(std::move(done)) {}
  // Adds a part. Call it only while another part has not ended.
  void Add() { ++left_; }
  void End(const StoreError* failed) {
    if (failed != nullptr) {
      std::lock_guard lock(mutex_);
      status_ = grpc::Status(grpc::StatusCode::UNAVAILABLE, *failed);
    }
    if (--left_ == 0) done_(status_);
  }

 private:
  std::atomic<int> left_;
  std::mutex mutex_;
  grpc::Status status_;
  const RateLimitRpc::Done done_;
};

template <typename T>
const StoreError* ErrorOf(const BasicResult<T, StoreError>& result) {
  return result.ok() ? nullptr : &result.error();
}

RateLimitRpc::Done FinishOf(grpc::ServerUnaryReactor* reactor) {
  return [reactor](const grpc::Status& status) { reactor->Finish(status); };
}

}  // namespace

RateLimitRpc::RateLimitRpc(LimiterStore& store, const Clock& clock)
    : store_(store),
      clock_(clock),
      acquired_{&AcquireCounter("granted"), &AcquireCounter("requests"),
                &AcquireCounter("concurrency"), &AcquireCounter("tokens")},
      shadow_{nullptr, &ShadowCounter("requests"), &ShadowCounter("concurrency"),
              &ShadowCounter("tokens")},
      settled_(ReleaseCounter("settled")),
      refunded_(ReleaseCounter("refunded")),
      unknown_(ReleaseCounter("unknown")),
      restored_(metrics::Counter("tollgate_ratelimit_leases_restored_total",
                                 "Slots of running requests that the store had lost.")),
      acquires_([this](const auto& request, auto& response, Done done) {
        DoAcquire(request, response, std::move(done));
      }),
      releases_(
          [this](const auto& request, auto&, Done done) { DoRelease(request, std::move(done)); }) {}

void RateLimitRpc::CloseStreams() {
  acquires_.Close();
  releases_.Close();
}

void RateLimitRpc::Report(const BasicResult<AcquireOutcome, StoreError>& outcome,
                          v1::AcquireResult& result) {
  if (!outcome) return;
  acquired_[static_cast<int>(outcome->denied_by)]->Increment();
  for (const Kind kind : outcome->shadow_refusals) shadow_[static_cast<int>(kind)]->Increment();
  result.set_granted(outcome->granted());
  // Kind and Who have the same values as the enums.
  result.set_denied_by(static_cast<v1::LimitKind>(outcome->denied_by));
  result.set_denied_subject(static_cast<v1::LimitSubject>(outcome->denied_subject));
  result.set_retry_after_ms(outcome->retry_after_ms);
  result.set_local_share(outcome->local_share);
  ToProto(outcome->requests, *result.mutable_requests());
  ToProto(outcome->tokens, *result.mutable_tokens());
}

// An item that takes from a workspace and from a model.
struct RateLimitRpc::Admission {
  Claim model;
  std::string workspace_scope;
  AcquireOutcome outcome;
  std::function<void(const StoreError*)> done;
};

// Takes from the workspace's limits first, in one step. The model's capacity is shared by all
// workspaces and is in another shard or hash slot, so it is a second step. If it refuses, the first
// is refunded. The temporary charge can only refuse another request, never admit one too many.
void RateLimitRpc::Admit(const v1::AcquireItem& item, v1::AcquireResult& result,
                         std::function<void(const StoreError*)> done) {
  const Id slot = *SlotOf(item.lease_id());
  Claim workspace = WorkspaceClaim(item, slot, item.estimated_tokens());
  auto model = ModelClaim(item, slot, item.estimated_tokens());
  if (!model) {
    return store_.Acquire(std::move(workspace), [this, &result, done = std::move(done)](auto got) {
      Report(got, result);
      done(ErrorOf(got));
    });
  }
  if (workspace.subjects.empty()) {
    return store_.Acquire(std::move(*model), [this, &result, done = std::move(done)](auto got) {
      Report(got, result);
      done(ErrorOf(got));
    });
  }
  auto admission = std::make_shared<Admission>();
  admission->model = std::move(*model);
  admission->workspace_scope = workspace.scope;
  admission->done = std::move(done);
  store_.Acquire(std::move(workspace), [this, &result, admission](auto first) {
    if (!first || !first->granted()) {
      Report(first, result);
      return admission->done(ErrorOf(first));
    }
    admission->outcome = std::move(*first);
    const Id slot = admission->model.slot;
    store_.Acquire(std::move(admission->model), [this, &result, admission, slot](auto second) {
      if (!second || !second->granted()) {
        store_.Release(admission->workspace_scope, slot, 0, true, [](auto) {});
      }
      if (!second) return admission->done(ErrorOf(second));
      Combine(*second, admission->outcome);
      Report(std::move(admission->outcome), result);
      admission->done(nullptr);
    });
  });
}

void RateLimitRpc::DoAcquire(const v1::AcquireRequest& request, v1::AcquireResponse& response,
                             Done done) {
  // Validates all items first: an invalid message must take nothing.
  for (const v1::AcquireItem& item : request.items()) {
    if (!SlotOf(item.lease_id())) return done(BadSlot());
  }
  response.set_store_id(store_.id());
  response.set_gateways(gateways_.Saw(request.gateway_id(), clock_.MonotonicUs()));
  if (request.items().empty()) return done(grpc::Status::OK);
  if (const auto spans = tracing::BeginCall(kAcquire, request.items())) {
    done = [spans, done = std::move(done)](const grpc::Status& status) {
      EndCall(spans, status.ok() ? "" : "service_unavailable");
      done(status);
    };
  }
  for (int i = 0; i < request.items_size(); ++i) response.add_results();
  const auto parts = std::make_shared<Parts>(request.items_size(), std::move(done));
  for (int i = 0; i < request.items_size(); ++i) {
    Admit(request.items(i), *response.mutable_results(i),
          [parts](const StoreError* failed) { parts->End(failed); });
  }
}

void RateLimitRpc::DoRelease(const v1::ReleaseRequest& request, Done done) {
  // One part more, so that the call ends after this loop.
  const auto parts = std::make_shared<Parts>(request.items_size() + 1, std::move(done));
  for (const v1::ReleaseItem& item : request.items()) {
    const auto slot = SlotOf(item.lease_id());
    if (!slot) {
      unknown_.Increment();
      parts->End(nullptr);
      continue;
    }
    if (!item.model().empty()) {
      // A failure here fails the call. The caller repeats it; what was already released stays
      // released.
      parts->Add();
      store_.Release(ModelScope(item.model()), *slot, item.actual_tokens(), item.refund(),
                     [parts](auto known) { parts->End(ErrorOf(known)); });
    }
    store_.Release(WorkspaceScope(item.workspace_id()), *slot, item.actual_tokens(), item.refund(),
                   [this, parts, refund = item.refund()](auto known) {
                     const bool held = known.ok() && *known;
                     (!held ? unknown_ : refund ? refunded_ : settled_).Increment();
                     parts->End(ErrorOf(known));
                   });
  }
  parts->End(nullptr);
}

void RateLimitRpc::DoRenew(const v1::RenewRequest& request, v1::RenewResponse& response,
                           Done done) {
  // Answers arrive on any thread.
  const auto mutex = std::make_shared<std::mutex>();
  std::vector<std::pair<Claim, std::string>> claims;
  for (const v1::RenewItem& item : request.items()) {
    const auto slot = SlotOf(item.lease_id());
    if (!slot) continue;
    claims.emplace_back(WorkspaceClaim(item, *slot, 0), item.lease_id());
    if (auto model = ModelClaim(item, *slot, 0)) claims.emplace_back(*model, item.lease_id());
  }
  const auto parts = std::make_shared<Parts>(static_cast<int>(claims.size()) + 1, std::move(done));
  for (const auto& [claim, id] : claims) {
    store_.Renew(claim, [this, parts, mutex, &response, id](auto renewal) {
      if (renewal.ok() && *renewal == Limiter::Renewal::kRestored) {
        restored_.Increment();
        std::lock_guard lock(*mutex);
        response.add_restored(id);
      }
      parts->End(ErrorOf(renewal));
    });
  }
  parts->End(nullptr);
}

void RateLimitRpc::DoPeek(const v1::PeekRequest& request, v1::PeekResponse& response, Done done) {
  const auto report = [&response, done](const PeekOutcome& outcome) {
    ToProto(outcome.requests, *response.mutable_requests());
    ToProto(outcome.tokens, *response.mutable_tokens());
    ToProto(outcome.concurrency, *response.mutable_concurrency());
    done(grpc::Status::OK);
  };
  const auto fail = [done](const StoreError& reason) {
    done({grpc::StatusCode::UNAVAILABLE, reason});
  };
  auto model = ModelClaim(request, Id(), 0);
  store_.Peek(WorkspaceClaim(request, Id(), 0), [this, model, report, fail](auto first) {
    if (!first) return fail(first.error());
    if (!model) return report(*first);
    store_.Peek(*model, [first, report, fail](auto second) {
      if (!second) return fail(second.error());
      PeekOutcome both = *first;
      Combine(*second, both);
      report(both);
    });
  });
}

namespace {

// Subjects read in one step. Redis serves no other caller meanwhile.
constexpr int kReadTogether = 16;
constexpr int kMaxUseItems = 1000;

int64_t InUse(int64_t used_ns, int64_t limit) { return limit - RemainingOf(used_ns, limit); }

void ToProto(const MinuteUse& use, const Limits& limits, int64_t now_us, v1::MinuteUse& into) {
  constexpr int64_t kNsPerUs = 1000;
  into.set_minutes_ago(static_cast<int32_t>(now_us / kMinuteUs - use.minute));
  into.set_requests(use.requests);
  into.set_tokens(use.tokens);
  if (limits.requests_per_minute > 0) {
    into.set_requests_peak(InUse(use.requests_peak_us * kNsPerUs, limits.requests_per_minute));
  }
  if (limits.tokens_per_minute > 0) {
    into.set_tokens_peak(InUse(use.tokens_peak_us * kNsPerUs, limits.tokens_per_minute));
  }
  if (limits.concurrent_requests > 0) into.set_concurrency_peak(use.running_peak);
  into.set_refused_by_requests(use.refused_requests);
  into.set_refused_by_tokens(use.refused_tokens);
  into.set_refused_by_concurrency(use.refused_concurrency);
}

void ToProto(const UseAnswer::Of& use, const v1::SubjectLimits& limits, int64_t now_us,
             v1::UseResult& into) {
  Claim claim{.subjects = {{.limits = FromProto(limits)}}};
  claim.subjects.front().limits.shadow = false;
  const PeekOutcome left = Describe(claim, {&use.reading, 1});
  ToProto(left.requests, *into.mutable_requests());
  ToProto(left.tokens, *into.mutable_tokens());
  ToProto(left.concurrency, *into.mutable_concurrency());
  for (const MinuteUse& minute : use.minutes) {
    ToProto(minute, claim.subjects.front().limits, now_us, *into.add_minutes());
  }
}

}  // namespace

void RateLimitRpc::DoGetUse(const v1::GetUseRequest& request, v1::GetUseResponse& response,
                            Done done) {
  if (request.items_size() > kMaxUseItems) {
    return done({grpc::StatusCode::INVALID_ARGUMENT, "at most 1,000 items"});
  }
  response.set_minutes_known(true);
  response.set_counted_ms(INT64_MAX);
  for (int i = 0; i < request.items_size(); ++i) response.add_results();
  // Consecutive items of one scope are read together.
  std::vector<std::pair<int, UseQuery>> queries;
  for (int i = 0; i < request.items_size(); ++i) {
    std::string scope = ScopeOf(request.items(i));
    if (queries.empty() || queries.back().second.scope != scope ||
        queries.back().second.subjects.size() == kReadTogether) {
      queries.push_back({i, {.scope = std::move(scope)}});
    }
    queries.back().second.subjects.push_back(SubjectOf(request.items(i)));
  }
  // Answers arrive on any thread.
  const auto mutex = std::make_shared<std::mutex>();
  const auto parts = std::make_shared<Parts>(static_cast<int>(queries.size()) + 1, std::move(done));
  for (auto& [first, query] : queries) {
    store_.ReadUse(std::move(query), [&request, &response, first, mutex, parts](auto answer) {
      if (answer.ok()) {
        std::lock_guard lock(*mutex);
        for (size_t i = 0; i < answer->subjects.size(); ++i) {
          const int at = first + static_cast<int>(i);
          ToProto(answer->subjects[i], request.items(at).limits(), answer->now_us,
                  *response.mutable_results(at));
        }
        response.set_minutes_known(response.minutes_known() && answer->minutes_known);
        response.set_minute_ms(answer->now_us % kMinuteUs / 1000);
        response.set_counted_ms(std::min(response.counted_ms(), answer->counted_us / 1000));
      }
      parts->End(ErrorOf(answer));
    });
  }
  parts->End(nullptr);
}

grpc::ServerUnaryReactor* RateLimitRpc::Acquire(grpc::CallbackServerContext* context,
                                                const v1::AcquireRequest* request,
                                                v1::AcquireResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  DoAcquire(*request, *response, FinishOf(reactor));
  return reactor;
}

grpc::ServerUnaryReactor* RateLimitRpc::Release(grpc::CallbackServerContext* context,
                                                const v1::ReleaseRequest* request,
                                                v1::ReleaseResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  DoRelease(*request, FinishOf(reactor));
  return reactor;
}

grpc::ServerBidiReactor<v1::AcquireCallsRequest, v1::AcquireCallsResponse>*
RateLimitRpc::AcquireCalls(grpc::CallbackServerContext*) {
  return acquires_.Open();
}

grpc::ServerBidiReactor<v1::ReleaseCallsRequest, v1::ReleaseCallsResponse>*
RateLimitRpc::ReleaseCalls(grpc::CallbackServerContext*) {
  return releases_.Open();
}

grpc::ServerUnaryReactor* RateLimitRpc::Renew(grpc::CallbackServerContext* context,
                                              const v1::RenewRequest* request,
                                              v1::RenewResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  DoRenew(*request, *response, FinishOf(reactor));
  return reactor;
}

grpc::ServerUnaryReactor* RateLimitRpc::Peek(grpc::CallbackServerContext* context,
                                             const v1::PeekRequest* request,
                                             v1::PeekResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  DoPeek(*request, *response, FinishOf(reactor));
  return reactor;
}

grpc::ServerUnaryReactor* RateLimitRpc::GetUse(grpc::CallbackServerContext* context,
                                               const v1::GetUseRequest* request,
                                               v1::GetUseResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  DoGetUse(*request, *response, FinishOf(reactor));
  return reactor;
}

}  // namespace tollgate::ratelimit
