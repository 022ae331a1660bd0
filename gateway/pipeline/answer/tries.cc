#include "gateway/pipeline/answer/tries.h"

#include <utility>

#include "common/observability/log.h"
#include "common/rpc/link_protocol.h"
#include "gateway/pipeline/admission/authorize.h"
#include "gateway/pipeline/admission/await_ledger.h"
#include "gateway/pipeline/admission/fall_back.h"
#include "gateway/pipeline/answer/dispatch.h"

namespace tollgate::gateway {

namespace {

// Stopping routers that one request may meet, for example during a rolling update. More are
// unlikely.
constexpr int kMostDeclines = 3;
// When a caller should ask again whose answer ends with this process.
constexpr int64_t kRetryMs = 1'000;

using Answer = Result<billing::v1::AuthorizeResult>;

// Whether the lost router had ended the request, so that its answer is lost. The ledger ends a
// request only once.
bool HadEnded(const RequestContext& context, const Answer& answer) {
  // The caller of a stream may have seen the id, and an idempotency key stays with its request.
  return !context.canonical.stream && context.idempotency_key_digest.empty() && answer &&
         answer->denied_by() == billing::v1::DENY_REASON_CLOSED;
}

// Refunds the charge and starts again as a new request.
Task<Answer> AuthorizeAgain(RequestContext& context) {
  context.hold.Refuse("the answer was lost with its inference router");
  context.id = Id::New();
  context.attempt = 0;
  context.hold =
      HoldGuard(*context.worker.clients.billing, context.id, context.key->workspace_id());
  co_return co_await AuthorizeOrWait(context);
}

}  // namespace

Tries::Tries(RequestContext& context)
    : context_(context), watched_(std::make_shared<RequestContext*>(&context)) {
  const auto cancel = [watched = watched_] {
    if (*watched != nullptr) (*watched)->generation->Cancel();
  };
  context.exchange.OnDisconnect(cancel);
  context.exchange.OnDrainOver(cancel);
}

Tries::Step Tries::Judge(const Result<Events>& received) const {
  if (context_.exchange.disconnected()) return Step::kLeft;
  const bool not_run = received && received->size() == 1 && received->front().has_end() &&
                       received->front().end().not_run();
  return received && !not_run ? Step::kRelay : Step::kRetry;
}

Task<Tries::Step> Tries::Retry(const Result<Events>& received) {
  if (!received && context_.exchange.drain_over()) {
    progress.error = Unavailable(Reason::kStopping, "the gateway stops", kRetryMs).error;
    co_return Step::kFailed;
  }
  if (!received) {
    // The router is lost. Parts of a stream may have reached the caller.
    const bool may_move = received.error().id == ErrorId::kServiceUnavailable &&
                          !(context_.canonical.stream && (progress.started || progress.any_delta));
    if (may_move && co_await MoveHold()) co_return SendNext();
    progress.error = received.error();
    co_return Step::kFailed;
  }
  if (context_.movable == nullptr) co_return Step::kRelay;
  const inference::v1::End& end = received->front().end();
  // A stopping router refused the request, which the gateway learns only after sending it. Another
  // router gets it with the same hold.
  if (end.error().internal() == kLinkRefusal && declined_ < kMostDeclines) {
    ++declined_;
    co_return SendNext();
  }
  if (context_.admitted_by_router && end.no_lease()) co_return co_await RetryWithHold();
  co_return Step::kRelay;
}

Task<bool> Tries::MoveHold() {
  RequestContext& context = context_;
  // A request that was not sent cannot be running, and the client has already waited for another
  // router.
  if (context.moved || !context.movable || !context.generation->sent()) co_return false;
  context.moved = true;
  ++context.attempt;
  Answer answer = co_await AuthorizeOrWait(context);
  if (HadEnded(context, answer)) answer = co_await AuthorizeAgain(context);
  const bool granted = answer && answer->granted();
  context.worker.metrics.CountMove(granted);
  if (!granted) {
    log::Warn("a request whose inference router was lost could not be moved to another one",
              {{"x_request_id", context.exchange.request().x_request_id},
               {"reason", answer ? billing::v1::DenyReason_Name(answer->denied_by())
                                 : answer.error().ToString()},
               TraceField(context.exchange.request())});
    co_return false;
  }
  if (context.exchange.disconnected()) co_return false;
  context.authorization = std::move(*answer);
  context.admitted_by_router = false;
  co_return true;
}

Task<Tries::Step> Tries::RetryWithHold() {
  Worker& worker = context_.worker;
  worker.leased.OnNoLease(context_.key->workspace_id(), worker.clock.MonotonicUs());
  context_.hold.Disarm();
  Result<void> authorized = co_await AuthorizeAtLedger(context_);
  if (!authorized) progress.error = authorized.error();
  if (context_.exchange.disconnected()) {
    if (authorized) context_.hold.Release("the caller left before a router had the request");
    co_return Step::kLeft;
  }
  co_return authorized ? SendNext() : Step::kFailed;
}

Task<bool> Tries::RetryWithNextModel() {
  const bool found = !context_.exchange.disconnected() && context_.movable != nullptr &&
                     co_await FallBack(context_, *progress.error);
  if (found) {
    declined_ = 0;
    SendNext();
  }
  co_return found;
}

void Tries::ForgetUnlessNeeded() {
  if (progress.hold_kept()) return;
  // Keeps a small request until its answer has ended, because the answer can be lost with its
  // router and nothing was sent yet. Large requests are kept only for another model.
  const bool may_be_lost =
      !context_.canonical.stream && !progress.over() && context_.kept_memory.bytes() == 0;
  if (!may_be_lost) ForgetRequest(context_);
}

Tries::Step Tries::SendNext() {
  SendAgain(context_);
  if (context_.exchange.drain_over()) context_.generation->Cancel();
  progress = Progress();
  return Step::kAgain;
}

}  // namespace tollgate::gateway
