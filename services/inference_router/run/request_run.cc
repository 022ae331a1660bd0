#include "services/inference_router/run/request_run.h"

#include <algorithm>

#include "common/rpc/error_detail.h"
#include "services/inference_router/engine/context_length.h"
#include "services/inference_router/run/admission.h"
#include "services/inference_router/run/settlement.h"

namespace tollgate::inference_router {
namespace {

// The gateway has the same limits (inference.proto).
constexpr int32_t kMaxChoices = 128;
constexpr int32_t kMaxInputs = 2048;

// Equals the wait for an authorize, because the request can still be refused.
constexpr Patience kPatienceBeforeStart = {.no_answer_ms = 2'000, .held_ms = 0};

EngineFailure Refusal(ErrorId id, Reason reason, std::string message, std::string internal,
                      int64_t retry_after_ms = 0) {
  EngineFailure failure;
  failure.error = {.id = id,
                   .message = std::move(message),
                   .retry_after_ms = retry_after_ms,
                   .internal = std::move(internal),
                   .reason = reason};
  return failure;
}

void CountCut(RouterMetrics& metrics, RunOutcome outcome) {
  if (outcome == RunOutcome::kCutByCredit) return metrics.cut_by_credit.Increment();
  metrics.CountCut(outcome == RunOutcome::kCutByHeld ? "held" : "no_answer");
}

// The outcome label of the metric for engine requests.
std::string OutcomeLabel(RunOutcome outcome, const Error& error, bool gateway_lost) {
  switch (outcome) {
    case RunOutcome::kCompleted:
      return "ok";
    case RunOutcome::kCutByCredit:
      return "cut_by_credit";
    case RunOutcome::kCutByHeld:
      return "cut_by_held";
    case RunOutcome::kCutByNoAnswer:
      return "cut_by_no_answer";
    case RunOutcome::kClientGone:
      return gateway_lost ? "gateway_lost" : "client_gone";
    case RunOutcome::kFailed:
      break;
  }
  return std::string(error.row().name);
}

}  // namespace

RequestRun::RequestRun(RunHost& host, std::shared_ptr<const RoutingTable> table,
                       inference::v1::GenerateRequest request, std::shared_ptr<EventSink> sink)
    : context_{.host = host,
               .table = std::move(table),
               .request = std::move(request),
               .sink = std::move(sink),
               .arrived_us = host.clock.MonotonicUs(),
               .route = nullptr,
               .slot = nullptr,
               .hold = nullptr} {
  auto& stored = context_.request;
  stored.set_choices(
      std::clamp(stored.choices(), 1, IsEmbedding(stored) ? kMaxInputs : kMaxChoices));
  stored.set_samples(std::max(stored.samples(), stored.choices()));
  context_.trace = RunTrace::Begin(stored, context_.arrived_us);
  host.metrics.running.Increment();
}

RequestRun::~RequestRun() { context_.host.metrics.running.Decrement(); }

Task<void> RequestRun::Run() {
  EventSink& sink = *context_.sink;
  RunOutcome outcome = RunOutcome::kFailed;
  if (context_.request.has_admission() && !co_await AdmitFromLease(context_)) {
    co_return co_await SendEnd(NoLease());
  }
  if (Prepare()) {
    sink.OnCancel([this] { Abort(); });
    context_.hold->OnClosedByLedger([this] { Abort(); });
    if (co_await HoldUnseenTokens()) outcome = co_await RunOnEngines();
    sink.OnCancel({});
  }
  if (sink.cancelled()) outcome = RunOutcome::kClientGone;
  co_await Finish(outcome);
  if (context_.trace) EndTrace(outcome);
}

void RequestRun::EndTrace(RunOutcome outcome) {
  RunTrace::Outcome ended;
  if (outcome == RunOutcome::kFailed) ended.error = &failure_.error.row();
  ended.client_gone = outcome == RunOutcome::kClientGone;
  ended.cut = IsCut(outcome);
  if (context_.route != nullptr && !context_.route->unlisted) {
    ended.model = context_.request.model();
  }
  context_.trace->End(ended, context_.host.clock.MonotonicUs());
}

bool RequestRun::Prepare() {
  const inference::v1::GenerateRequest& request = context_.request;
  RunHost& host = context_.host;
  context_.slot =
      host.journal.Acquire({request.request_id(), request.workspace_id(), request.key_id(),
                            request.model(), request.streamed(), request.attempt()});
  context_.hold = std::make_shared<HoldKeeper>(host.loop, host.metering, host.clock, context_.slot,
                                               host.metrics, HoldOptions(context_));
  if (context_.ticket) {
    context_.hold->OnRegistered([&host, key = OutboxKey(request.request_id(), request.attempt())] {
      host.admissions->Acknowledge(key);
    });
  }
  if (context_.slot == nullptr) {
    failure_ = Refusal(ErrorId::kServerError, Reason::kNone, "",
                       "no journal slot: invalid id, name too long, or disk full");
    return false;
  }
  if (request.kind() == inference::v1::REQUEST_KIND_UNSPECIFIED) {
    failure_ = Refusal(ErrorId::kServerError, Reason::kNone, "",
                       "kind of request not supported by the router");
    return false;
  }
  const Route* route = context_.route = FindRoute();
  if (route == nullptr || !route->serving || route->engines.empty()) {
    failure_ =
        Refusal(ErrorId::kModelNotServing, Reason::kNotServing, "",
                route ? "model suspended, or its pool is empty" : "model not in catalog", 1000);
    failed_by_model_ = true;
    return false;
  }
  context_.SetNeed();
  return true;
}

const Route* RequestRun::FindRoute() const {
  if (context_.table == nullptr) return nullptr;
  const Route* route = context_.table->Find(context_.request.model());
  const bool completion = context_.request.kind() == inference::v1::REQUEST_KIND_COMPLETION;
  return route == nullptr && completion ? context_.table->unlisted() : route;
}

// The engine reports unseen tokens only at the end, so their maximum is held before it starts
// (decision 1).
Task<bool> RequestRun::HoldUnseenTokens() {
  const int64_t unseen = context_.UnseenTokens();
  if (unseen == 0) co_return true;
  const common::v1::Usage none;
  const Coverage coverage = co_await context_.hold->Ensure(unseen, none, kPatienceBeforeStart);
  switch (coverage) {
    case Coverage::kPaid:
      co_return true;
    case Coverage::kNoCredit:
      failure_ = Refusal(ErrorId::kInsufficientCredits, Reason::kBalance,
                         "The workspace does not have enough credit left for this 'best_of'.", "");
      break;
    case Coverage::kHeld:
      failure_ =
          Refusal(ErrorId::kRateLimited, Reason::kHeld,
                  "The workspace's credit is held by requests that are still running.", "", 1000);
      break;
    case Coverage::kNoAnswer:
    case Coverage::kClosed:
    case Coverage::kInterrupted:
      failure_ = Refusal(ErrorId::kServiceUnavailable, Reason::kBillingUnavailable, "",
                         "the ledger did not extend the hold", 1000);
      break;
  }
  co_return false;
}

void RequestRun::FailWithoutEngine(const Selection& selection) {
  failed_by_model_ = true;
  const bool queue_full = selection.no_engine == NoEngine::kQueueFull;
  if (queue_full || selection.no_engine == NoEngine::kSaturated) {
    failure_ = Refusal(
        ErrorId::kRateLimited, queue_full ? Reason::kQueueFull : Reason::kEngineFull,
        "The model is at capacity. Please retry shortly.",
        queue_full ? "the queue of the pool is full" : "every engine of the pool is saturated",
        selection.retry_after_ms);
  } else {
    failure_ = Refusal(ErrorId::kModelNotServing, Reason::kEnginesDown, "",
                       "every engine of the pool is down", selection.retry_after_ms);
  }
}

// Other 4xx of an engine are about the request, which another model would get unchanged.
bool RequestRun::MayAnotherModelAnswer() {
  const ErrorId id = failure_.error.id;
  const int status = failure_.error.row().http_status;
  return context_.request.keep_hold() && failed_by_model_ && !(run() && run()->started()) &&
         !context_.hold->closed_by_ledger() && !context_.hold->reported_output() &&
         !context_.sink->cancelled() &&
         (status >= 500 || status == 429 || id == ErrorId::kContextLengthExceeded ||
          id == ErrorId::kModelNotFound);
}

// Returns whether the request has to end. Sets failure_ if so.
bool RequestRun::IsStopped() {
  if (context_.hold->closed_by_ledger()) {
    failure_ = Refusal(ErrorId::kServiceUnavailable, Reason::kHoldClosed, "",
                       "the ledger has closed the hold", 1000);
  } else if (terminated_) {
    failure_ = Refusal(ErrorId::kServiceUnavailable, Reason::kStopping, "", "shutting down", 1000);
  } else {
    return false;
  }
  return true;
}

Task<RunOutcome> RequestRun::RunOnEngines() {
  RunHost& host = context_.host;
  std::vector<EnginePointer> tried;
  for (int i = 0; i < host.settings.max_tries; ++i) {
    if (IsStopped()) {
      failed_by_model_ = false;
      co_return RunOutcome::kFailed;
    }
    Selection selection;
    if (i == 0) {
      selection = co_await wait_.First();
    } else {
      selection = SelectEngine(context_.route->engines, tried, host.clock.MonotonicUs(),
                               ++host.rotation, context_.need);
    }
    if (selection.engine == nullptr) {
      if (i == 0 && IsStopped()) {
        failed_by_model_ = false;
      } else if (i == 0) {
        FailWithoutEngine(selection);  // later, the first engine's failure is reported
      }
      co_return RunOutcome::kFailed;
    }
    context_.work.Enter(selection.engine, selection.work, context_.need.work.output);
    if (!MayTry(i)) {
      context_.work.Leave();
      context_.route->queue->Grant(host.clock.MonotonicUs());
      co_return RunOutcome::kFailed;
    }
    host.metrics.CountChoice(selection.reason);
    context_.NoteChoice(selection);
    const RunOutcome outcome = co_await RunOn(*selection.engine, selection.reason);
    context_.work.Leave();
    context_.route->queue->Grant(host.clock.MonotonicUs());
    CountRuns(outcome);
    const bool retry = outcome == RunOutcome::kFailed && !run()->started() &&
                       failure_.try_elsewhere && !context_.sink->cancelled();
    if (!retry) co_return outcome;
    tried.push_back(std::move(selection.engine));
    if (hedge_ && hedge_->begun()) {
      tried.push_back(hedge_->second_engine());
      ++i;
    }
  }
  co_return RunOutcome::kFailed;
}

// number: number of the attempt, from 0.
bool RequestRun::MayTry(int number) {
  RunHost& host = context_.host;
  RetryBudget& budget = *context_.route->retries;
  if (number == 0) {
    budget.OnRequest();
    return true;
  }
  const bool may = budget.TryTake(host.clock.MonotonicUs());
  (may ? host.metrics.retries : host.metrics.retries_refused).Increment();
  return may;
}

void RequestRun::CountRuns(RunOutcome outcome) {
  EngineMetrics& engines = context_.host.metrics.engines;
  engines.CountRequest(run()->engine_id(),
                       OutcomeLabel(outcome, failure_.error, context_.sink->receiver_lost()));
  if (!hedge_ || !hedge_->begun()) return;
  const EngineRun& other = hedge_->other();
  engines.CountRequest(other.engine_id(), other.given_up() ? "given_up"
                                          : context_.sink->cancelled()
                                              ? "client_gone"
                                              : std::string(other.failure().error.row().name));
}

EngineRun* RequestRun::run() {
  if (hedge_) return &hedge_->kept();
  return first_run_ ? &*first_run_ : nullptr;
}

// The route keeps the engine alive, so the run may refer to it until the request ends.
Task<RunOutcome> RequestRun::RunOn(EngineState& engine, ChoiceReason reason) {
  ++context_.tries;
  hedge_.reset();
  EngineRun& first = first_run_.emplace(context_, engine, context_.work);
  const Clock& clock = context_.host.clock;
  if (context_.trace) {
    context_.trace->BeginAttempt(engine.id(), engine.engine().kind(), NameOf(reason),
                                 clock.MonotonicUs());
  }
  RunOutcome outcome;
  if (context_.tries == 1 && Hedge::Wanted(context_, first)) {
    outcome = co_await hedge_.emplace(context_, first).Run();
  } else {
    outcome = co_await first.Run();
  }
  if (context_.trace) {
    const bool failed = outcome == RunOutcome::kFailed;
    const int64_t first_us = run()->first_output_us();
    context_.trace->EndAttempt(failed ? &run()->failure().error.row() : nullptr,
                               first_us > 0 ? context_.arrived_us + first_us : 0,
                               clock.MonotonicUs());
  }
  if (outcome == RunOutcome::kFailed) {
    failed_by_model_ = !IsStopped();
    if (failed_by_model_) failure_ = run()->failure();
    if (failure_.limit != AnswerLimit::kNone) {
      context_.host.metrics.CountAnswerLimit(NameOf(failure_.limit));
    }
  }
  co_return outcome;
}

void RequestRun::Abort() {
  wait_.Abort();
  if (hedge_) {
    hedge_->Abort();
  } else if (first_run_) {
    first_run_->Abort();
  }
  context_.hold->Interrupt();
}

void RequestRun::Terminate() {
  terminated_ = true;
  if (context_.hold) Abort();
}

void RequestRun::Heartbeat() {
  if (!context_.hold) return;
  EngineRun* const present = run();
  if (present) present->EndIfEngineIsLost();
  const bool counts = present && present->accepted();
  context_.hold->Heartbeat(counts ? present->UsageNow() : common::v1::Usage());
}

Task<void> RequestRun::Finish(RunOutcome outcome) {
  if (IsCut(outcome)) {
    CountCut(context_.host.metrics, outcome);
    co_await run()->CloseChoices();
  }
  Settlement settlement(context_, run(), outcome);
  if (settlement.IsCharged()) {
    co_await SendEnd(co_await settlement.Charge(failure_.error));
    co_return;
  }
  const bool failed = outcome == RunOutcome::kFailed;
  settlement.Observe({}, failed ? failure_.error.row().name : "client_gone");
  if (failed && failure_.error.tokens.prompt_is_lower_bound) co_await CountOverflow();
  // The gateway must learn that the hold is left open, so nothing may suspend between this and the
  // send.
  const bool keep_hold = failed && MayAnotherModelAnswer();
  if (keep_hold) {
    settlement.LeaveHold();
  } else {
    co_await settlement.Release();
  }
  if (!failed) co_return;
  inference::v1::End end;
  end.set_hold_kept(keep_hold);
  rpc::ToDetail(failure_.error, *end.mutable_error());
  co_await SendEnd(std::move(end));
}

// An engine may stop counting a prompt that does not fit. Clients shorten the prompt by the excess,
// so they need the complete count (decision 32).
Task<void> RequestRun::CountOverflow() {
  // Tokenizers do not count media.
  if (context_.request.prompt_media_parts() > 0) co_return;
  inference::v1::CountTokensRequest request;
  request.set_x_request_id(context_.request.x_request_id());
  request.set_model(context_.request.model());
  request.set_kind(context_.request.kind());
  request.set_members_json(context_.request.members_json());
  if (context_.request.has_reasoning()) *request.mutable_reasoning() = context_.request.reasoning();
  const auto counted = co_await context_.host.counter->Count(context_.table, std::move(request));
  TokenAccounting& tokens = failure_.error.tokens;
  if (!counted.counted() || counted.prompt_tokens() < tokens.prompt) co_return;
  tokens.prompt = counted.prompt_tokens();
  tokens.prompt_is_lower_bound = false;
  failure_.error.message = ContextLengthMessage(tokens);
}

Task<void> RequestRun::SendEnd(inference::v1::End end) {
  if (context_.sink->cancelled()) co_return;
  inference::v1::Event event;
  if (context_.choice && !(run() && run()->started())) *end.mutable_choice() = *context_.choice;
  *event.mutable_end() = std::move(end);
  co_await context_.sink->Send(std::move(event));
}

}  // namespace tollgate::inference_router
