#include "services/inference_router/run/engine_run.h"

#include <algorithm>

#include "common/base/id.h"
#include "common/engines/kinds.h"
#include "services/inference_router/engine/context_length.h"
#include "services/inference_router/engine/request_members.h"
#include "services/inference_router/run/admission.h"
#include "services/inference_router/run/answer_times.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::GenerateRequest;

// Whether the engine reports the usage of each of several choices separately.
bool SeparateReports(const GenerateRequest& request, const EngineState& engine) {
  return request.choices() > 1 && request.kind() != inference::v1::REQUEST_KIND_EMBEDDING &&
         engines::Of(engine.engine().kind()).usage_per_choice;
}

// Whether the answer contains the prompt, whose tokens are not those of the output.
bool Echoes(const GenerateRequest& request) {
  if (request.kind() != inference::v1::REQUEST_KIND_COMPLETION ||
      request.members_json().find("\"echo\"") == std::string::npos) {
    return false;
  }
  const auto members = ParseMembers(request.members_json());
  return members && members->root().Find("echo").boolean();
}

TokenMeter::Options MeterOptions(const RunContext& context, const EngineState& engine) {
  const GenerateRequest& request = context.request;
  TokenMeter::Options options;
  options.choices = request.choices();
  options.prompt_tokens_bound = request.prompt_tokens_bound();
  options.prompt_tokens_estimate = request.prompt_tokens_estimate();
  options.most_tokens = TokensPerChoice(request) * request.samples();
  options.unseen_tokens = context.UnseenTokens();
  options.usage_per_choice = engines::Of(engine.engine().kind()).usage_on_chunks;
  options.prompt_per_choice =
      request.kind() == inference::v1::REQUEST_KIND_COMPLETION && request.choices() > 1;
  if (SeparateReports(request, engine)) {
    options.usage_per_choice = true;
    options.choices_per_prompt = ChoicesPerPrompt(request);
  }
  return options;
}

// The most that a chat template adds to the bytes of a request.
constexpr int64_t kMaxTemplateTokens = 8'192;

}  // namespace

EngineRun::EngineRun(RunContext& context, EngineState& engine, WorkMeter& work)
    : context_(context),
      engine_(engine),
      work_(work),
      answer_(AnswerToAsk()),
      meter_(MeterOptions(context, engine)),
      limit_(Echoes(context.request) ? 0 : TokensPerChoice(context.request),
             context.request.choices()) {
  closed_choices_.resize(context.request.choices());
}

// Streaming costs a socket read, an event and a count per token. If the caller does not stream, the
// answer is requested as a whole, unless it may have to be cut (decision 42).
EngineAnswer EngineRun::AnswerToAsk() const {
  const GenerateRequest& request = context_.request;
  const RunSettings& settings = context_.host.settings;
  const int64_t most = MostTokens();
  const bool whole = !request.streamed() && most > 0 && !SeparateReports(request, engine_) &&
                     most <= settings.unstreamed_max_tokens &&
                     WholeAnswerMs(settings, engine_.pace(), request.prompt_tokens_estimate(),
                                   most) <= settings.unstreamed_answer_ms &&
                     context_.hold->spending().CoversAll();
  return whole ? EngineAnswer::kWhole : EngineAnswer::kStreamed;
}

int64_t EngineRun::MostTokens() const {
  return context_.request.max_tokens() * context_.request.samples();
}

Task<RunOutcome> EngineRun::Run() {
  context_.slot->SetEngine(engine_.catalog_id());
  if (context_.sink->cancelled()) co_return RunOutcome::kClientGone;
  if (given_up_) co_return RunOutcome::kFailed;

  const RunHost& host = context_.host;
  begun_us_ = host.clock.MonotonicUs();
  const Route& route = *context_.route;
  const GenerateRequest& request = context_.request;
  EngineAttempt attempt(host.loop, host.http,
                        {.kind = request.kind(),
                         .choices = request.choices(),
                         .window = route.context_window,
                         .usage_follows_choice = SeparateReports(request, engine_),
                         .max_answer_bytes = host.settings.max_answer_bytes},
                        TimesOf(host.settings, answer_));
  attempt_ = &attempt;
  RunOutcome outcome = RunOutcome::kFailed;
  if (co_await attempt.Open(BuildCall()) && !given_up_) {
    engine_.OnSuccess(host.clock.MonotonicUs());
    accepted_ = true;
    context_.slot->SetAccepted();
    SaveUsage(meter_.completion_tokens());
    outcome = co_await Relay(attempt);
  } else if (attempt.connect_failed() && !given_up_) {
    engine_.OnConnectFailure(host.clock.MonotonicUs());
  }
  attempt_ = nullptr;
  if (given_up_) {
    accepted_ = false;
    co_return RunOutcome::kFailed;
  }
  if (context_.sink->cancelled()) {
    outcome = RunOutcome::kClientGone;
    if (answer_ == EngineAnswer::kWhole && attempt.aborted() && attempt.sent()) {
      accepted_ = true;
    }
  }
  if (outcome == RunOutcome::kFailed) {
    failure_ = own_failure_ ? std::move(*own_failure_) : attempt.failure();
    NoteFailure();
    if (failure_.pause_ms > 0) {
      engine_.PauseUntil(host.clock.MonotonicUs() + failure_.pause_ms * 1000);
    }
    if (failure_.not_found && route.unlisted) {  // decision 20
      failure_.error = {.id = ErrorId::kModelNotFound,
                        .message = "The model '" + request.model() + "' is not available.",
                        .internal = std::move(failure_.error.internal),
                        .reason = Reason::kEngineLacksModel};
    }
    if (!started_) accepted_ = false;  // a failure before any output is not charged
  } else if (outcome != RunOutcome::kCompleted) {
    attempt.Abort();
  }
  co_return outcome;
}

// Records failures of the engine, but not of the caller. The text contains nothing of the request.
void EngineRun::NoteFailure() {
  const ErrorRow& row = failure_.error.row();
  if (row.http_status < 500 && row.http_status != 429) return;
  engine_.NoteFailure("request: " + std::string(row.code), context_.host.clock.WallUs());
}

void EngineRun::Abort() {
  if (attempt_ != nullptr) attempt_->Abort();
}

void EngineRun::GiveUp() {
  given_up_ = true;
  // The wait already exceeds the average, so it counts as a first output.
  const int64_t waited_us = context_.host.clock.MonotonicUs() - begun_us_;
  if (begun_us_ > 0 && waited_us > engine_.first_output_us()) engine_.NoteFirstOutput(waited_us);
  Abort();
}

void EngineRun::EndIfEngineIsLost() {
  if (answer_ == EngineAnswer::kStreamed || started_ || attempt_ == nullptr) return;
  const int64_t now_us = context_.host.clock.MonotonicUs();
  const int64_t down_us = engine_.DownForUs(now_us);
  if (down_us != 0 && down_us >= context_.host.settings.lost_engine_ms * 1000) {
    return FailWith(Unreachable("the engine's health checks fail"));
  }
  if (!IsLate(now_us)) return;
  engine_.pace().Forget();
  FailWith(TimedOut(AnswerLimit::kFirstOutput));
}

bool EngineRun::IsLate(int64_t now_us) const {
  const int64_t most_ms = WholeAnswerMs(context_.host.settings, engine_.pace(),
                                        context_.request.prompt_tokens_estimate(), MostTokens());
  return (now_us - begun_us_) / 1'000 > most_ms && !engine_.HasQueue(now_us);
}

void EngineRun::FailWith(EngineFailure failure) {
  own_failure_ = std::move(failure);
  Abort();
}

// Some engines (vLLM) index requests by this header, and two requests with the same id interfere.
// Clients choose x_request_id freely, so it is made unique (decision 26). A retry also needs
// another id, because the engine may not have ended the first attempt yet.
std::string EngineRun::EngineRequestId() const {
  const auto id = Id::FromBytes(context_.request.request_id());
  std::string unique = context_.request.x_request_id();
  if (id) unique += "." + id->ToHex();
  if (context_.request.attempt() > 0) unique += "." + std::to_string(context_.request.attempt());
  if (context_.tries > 1) unique += "-" + std::to_string(context_.tries);
  return unique;
}

http::ClientRequest EngineRun::BuildCall() const {
  const GenerateRequest& request = context_.request;
  const Route& route = *context_.route;
  const bool whole =
      answer_ == EngineAnswer::kWhole || request.kind() == inference::v1::REQUEST_KIND_EMBEDDING;
  http::ClientRequest call;
  call.method = "POST";
  call.origin = engine_.base().origin;
  call.target = engine_.base().path + std::string(EnginePath(request.kind()));
  call.headers = {{"content-type", "application/json"},
                  {"accept", whole ? "application/json" : "text/event-stream"}};
  if (!engine_.engine().api_key().empty()) {
    call.headers.emplace_back("authorization", "Bearer " + engine_.engine().api_key());
  }
  if (!request.x_request_id().empty()) {
    call.headers.emplace_back("x-request-id", EngineRequestId());
  }
  if (!request.traceparent().empty()) {
    call.headers.emplace_back("traceparent", context_.trace ? context_.trace->AttemptTraceparent()
                                                            : request.traceparent());
    if (!request.tracestate().empty()) {
      call.headers.emplace_back("tracestate", request.tracestate());
    }
  }
  const catalog::v1::EngineKind kind = engine_.engine().kind();
  std::string salt;
  if (engines::Of(kind).cache_salt && !engine_.engine().shared_cache()) {
    salt = CacheSalt(context_.host.settings.cache_salt_key, request.workspace_id(),
                     request.cache_salt());
  }
  call.body = BuildEngineBody(request, kind,
                              route.engine_model.empty() ? request.model() : route.engine_model,
                              answer_, salt, &context_.fitter);
  return call;
}

Task<RunOutcome> EngineRun::Relay(EngineAttempt& attempt) {
  for (;;) {
    batch_.Clear();
    const EngineAttempt::ReadResult result = co_await attempt.Next(batch_);
    if (given_up_) co_return RunOutcome::kFailed;
    if (on_answer_ && (!batch_.chunks.empty() || result == EngineAttempt::ReadResult::kEnd)) {
      std::exchange(on_answer_, {})();
      context_.slot->SetEngine(engine_.catalog_id());
    }
    CountBatch();
    work_.OnOutput(meter_.completion_tokens());
    if (context_.sink->cancelled()) co_return RunOutcome::kClientGone;
    if (IsAboveWindow()) {
      FailWith(AboveWindow());
      co_return RunOutcome::kFailed;
    }
    if (!batch_.events.empty()) {
      const RunOutcome outcome = co_await ForwardBatch();
      if (outcome != RunOutcome::kCompleted) co_return outcome;
    }
    SaveUsage(meter_.completion_tokens());
    context_.hold->ExtendAhead(UsageNow());
    if (limit_.over() || result == EngineAttempt::ReadResult::kEnd) break;
    if (result == EngineAttempt::ReadResult::kFailed) co_return RunOutcome::kFailed;
  }
  if (limit_.over()) attempt.Abort();  // nothing that follows is delivered or charged
  NoteAnswer();
  if (!started_ && !co_await SendStarted()) co_return RunOutcome::kClientGone;
  co_return RunOutcome::kCompleted;
}

void EngineRun::NoteAnswer() {
  const RunHost& host = context_.host;
  if (limit_.exceeded()) host.metrics.CountAnswerLimit(NameOf(AnswerLimit::kMaxTokens));
  // A caller who streams may read slowly, which is not the engine's pace.
  if (context_.request.streamed()) return;
  engine_.pace().NoteAnswer(host.clock.MonotonicUs() - begun_us_, meter_.completion_tokens());
}

// Counts chunk by chunk, because the usage of a chunk includes the chunk's own text.
void EngineRun::CountBatch() {
  tokens_due_.clear();
  size_t at = 0;
  for (const EngineBatch::Chunk& chunk : batch_.chunks) {
    const size_t begin = at;
    at = chunk.events_end;
    CountEvents(begin, at);
    if (chunk.usage) {
      meter_.OnUsage(*chunk.usage);
      if (meter_.prompt_tokens() > 0) {
        context_.hold->spending().SetPromptTokens(meter_.prompt_tokens());
      }
    }
    if (chunk.whole && !meter_.reported()) {
      for (size_t i = begin; i < at; ++i) meter_.CountBySize(batch_.events[i].delta());
    }
    if (chunk.whole)
      limit_.Shorten(meter_.seen_tokens(), std::span(batch_.events).subspan(begin, at - begin));
    tokens_due_.resize(at, meter_.completion_tokens());
  }
}

void EngineRun::CountEvents(size_t begin, size_t end) {
  for (size_t i = begin; i < end; ++i) {
    inference::v1::Delta& delta = *batch_.events[i].mutable_delta();
    limit_.Apply(meter_.tokens_of(delta.choice()), delta);
    meter_.OnDelta(delta);
  }
}

bool EngineRun::IsAboveWindow() const {
  const GenerateRequest& request = context_.request;
  const int64_t window = context_.route->context_window;
  const auto& report = meter_.last_report();
  if (window <= 0 || !report || !report->prompt_tokens) return false;
  if (request.streamed() && started_) return false;
  // For several prompts engines report the sum.
  const bool chat = request.kind() == inference::v1::REQUEST_KIND_CHAT;
  if (!chat && request.samples() > 1) return false;
  // A prompt cannot have more tokens than bytes (H75).
  const auto most = static_cast<int64_t>(request.members_json().size()) + kMaxTemplateTokens;
  const int64_t tokens = *report->prompt_tokens;
  const bool has_output = request.kind() != inference::v1::REQUEST_KIND_EMBEDDING;
  return tokens <= most && tokens >= (has_output ? window : window + 1);
}

EngineFailure EngineRun::AboveWindow() const {
  EngineFailure failure;
  failure.error.id = ErrorId::kContextLengthExceeded;
  failure.error.internal = "the engine's count of the prompt is above the model's window";
  const int64_t window = context_.route->context_window;
  // An engine that cuts prompts reports the cut prompt. With the first token of the answer even a
  // prompt of exactly the window exceeds it.
  const int64_t reported = meter_.last_report()->prompt_tokens.value_or(0);
  failure.error.tokens = {
      .limit = window, .prompt = std::max(reported, window + 1), .prompt_is_lower_bound = true};
  failure.error.message = ContextLengthMessage(failure.error.tokens);
  return failure;
}

Task<RunOutcome> EngineRun::ForwardBatch() {
  HoldKeeper& hold = *context_.hold;
  for (size_t i = 0; i < batch_.events.size(); ++i) {
    // Its choice was ended before.
    if (limit_.exceeded() && batch_.events[i].delta().ByteSizeLong() == 0) continue;
    if (tokens_due_[i] > hold.spending().affordable()) {
      const common::v1::Usage usage = UsageNow();
      const Coverage coverage =
          co_await hold.Ensure(tokens_due_[i], usage, context_.host.settings.patience);
      if (coverage != Coverage::kPaid) co_return co_await Cut(coverage);
    }
    // Saved before the output can reach the caller: delivered output is charged even after a crash
    // (decision 7).
    SaveUsage(tokens_due_[i]);
    if (!started_ && !co_await SendStarted()) co_return RunOutcome::kClientGone;
    inference::v1::Event& event = batch_.events[i];
    if (event.delta().finish_reason() != inference::v1::FINISH_REASON_UNSPECIFIED) {
      closed_choices_[event.delta().choice()] = true;
    }
    if (!co_await context_.sink->Send(std::move(event))) co_return RunOutcome::kClientGone;
    delivered_ = meter_.has_output();
  }
  co_return RunOutcome::kCompleted;
}

Task<RunOutcome> EngineRun::Cut(Coverage coverage) {
  if (coverage == Coverage::kClosed || coverage == Coverage::kInterrupted) {
    co_return RunOutcome::kFailed;
  }
  if (!started_ && !co_await SendStarted()) co_return RunOutcome::kClientGone;
  co_return coverage == Coverage::kHeld ? RunOutcome::kCutByHeld
  : coverage == Coverage::kNoAnswer     ? RunOutcome::kCutByNoAnswer
                                        : RunOutcome::kCutByCredit;
}

Task<bool> EngineRun::SendStarted() {
  started_ = true;
  const RunHost& host = context_.host;
  first_output_us_ = std::max<int64_t>(host.clock.MonotonicUs() - context_.arrived_us, 1);
  if (answer_ == EngineAnswer::kStreamed) {
    host.metrics.time_to_first_token.Observe(static_cast<double>(first_output_us_) / 1e6);
    engine_.NoteFirstOutput(host.clock.MonotonicUs() - begun_us_);
  } else {
    host.metrics.whole_answers.Increment();
  }
  inference::v1::Event event;
  inference::v1::Started& started = *event.mutable_started();
  if (const auto& report = meter_.last_report()) {
    started.set_prompt_tokens(meter_.prompt_tokens());
    started.set_cached_tokens(
        std::clamp<int64_t>(report->cached_tokens, 0, started.prompt_tokens()));
    started.set_cache_write_tokens(std::clamp<int64_t>(
        report->cache_write_tokens, 0, started.prompt_tokens() - started.cached_tokens()));
  }
  if (context_.choice) *started.mutable_choice() = *context_.choice;
  return context_.sink->Send(std::move(event));
}

void EngineRun::SaveUsage(int64_t completion_tokens) {
  const int64_t prompt = meter_.prompt_tokens();
  context_.slot->SetUsage(prompt > 0 ? prompt : meter_.prompt_tokens_estimate(), completion_tokens);
  const int64_t reasoning = std::min(meter_.reasoning_tokens(), completion_tokens);
  if (reasoning <= saved_reasoning_) return;
  saved_reasoning_ = reasoning;
  context_.slot->SetDetails(0, 0, reasoning);
}

// The ledger accepts only growing counts, and the engine's prompt count may be below the estimate.
// So no prompt tokens are reported until the engine has counted them.
common::v1::Usage EngineRun::UsageNow() const {
  common::v1::Usage usage;
  usage.set_prompt_tokens(meter_.prompt_tokens());
  usage.set_completion_tokens(meter_.completion_tokens());
  return usage;
}

Task<void> EngineRun::CloseChoices() {
  for (size_t i = 0; i < closed_choices_.size(); ++i) {
    if (closed_choices_[i]) continue;
    inference::v1::Event event;
    inference::v1::Delta& delta = *event.mutable_delta();
    delta.set_choice(static_cast<int32_t>(i));
    delta.set_finish_reason(inference::v1::FINISH_REASON_LENGTH);
    if (!co_await context_.sink->Send(std::move(event))) co_return;
  }
}

}  // namespace tollgate::inference_router
