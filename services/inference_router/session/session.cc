#include "services/inference_router/session/session.h"

#include <algorithm>

#include "common/base/id.h"
#include "services/inference_router/engine/engine_request.h"

namespace tollgate::inference_router {
namespace {

// As the gateway bounds them (inference.proto).
constexpr int32_t kMaxChoices = 128;
constexpr int32_t kMaxInputs = 2048;

bool IsEmbedding(const inference::v1::GenerateRequest& request) {
  return request.kind() == inference::v1::REQUEST_KIND_EMBEDDING;
}

// An embedding has no output: only its input is held and charged.
Rates RatesOf(const inference::v1::GenerateRequest& request) {
  const auto& price = request.hold().price();
  return Rates{std::max<int64_t>(price.input_pico_usd(), 0),
               IsEmbedding(request) ? 0 : std::max<int64_t>(price.output_pico_usd(), 0)};
}

EngineFailure Refusal(ErrorId id, std::string message, std::string internal,
                      int64_t retry_after_ms = 0) {
  EngineFailure failure;
  failure.error.id = id;
  failure.error.message = std::move(message);
  failure.error.internal = std::move(internal);
  failure.error.retry_after_ms = retry_after_ms;
  return failure;
}

}  // namespace

Session::Session(SessionHost& host, std::shared_ptr<const RoutingTable> table,
                 inference::v1::GenerateRequest request, std::shared_ptr<EventSink> sink)
    : host_(host),
      table_(std::move(table)),
      request_(std::move(request)),
      sink_(std::move(sink)),
      arrived_us_(host.clock.MonotonicUs()) {
  request_.set_choices(
      std::clamp(request_.choices(), 1, IsEmbedding(request_) ? kMaxInputs : kMaxChoices));
  request_.set_samples(std::max(request_.samples(), request_.choices()));
  closed_choices_.resize(request_.choices());
  host_.metrics.running.Increment();
}

Session::~Session() { host_.metrics.running.Decrement(); }

bool Session::Prepare() {
  slot_ = host_.journal.Acquire(
      {request_.request_id(), request_.workspace_id(), request_.key_id(), request_.model()});
  HoldKeeper::Options options;
  options.request_id = request_.request_id();
  options.workspace_id = request_.workspace_id();
  options.spending.rates = RatesOf(request_);
  options.spending.authorized_nano_usd = request_.hold().authorized_nano_usd();
  options.spending.slice_nano_usd = request_.hold().slice_nano_usd();
  options.spending.prompt_tokens_bound = request_.prompt_tokens_bound();
  options.spending.max_output_tokens = request_.max_tokens() * request_.samples();
  hold_ = std::make_shared<HoldKeeper>(host_.loop, host_.metering, host_.clock, slot_,
                                       std::move(options));
  meter_.emplace(MeterOptions(nullptr));
  if (slot_ == nullptr) {
    failure_ = Refusal(ErrorId::kServerError, "", "no journal slot: bad id or name, or disk full");
    return false;
  }
  if (request_.kind() == inference::v1::REQUEST_KIND_UNSPECIFIED) {
    failure_ = Refusal(ErrorId::kServerError, "", "kind of request not supported by the router");
    return false;
  }
  route_ = FindRoute();
  if (route_ == nullptr || !route_->serving || route_->engines.empty()) {
    failure_ =
        Refusal(ErrorId::kModelNotServing, "",
                route_ ? "model suspended, or its pool is empty" : "model not in catalog", 1000);
    return false;
  }
  return true;
}

const Route* Session::FindRoute() const {
  if (table_ == nullptr) return nullptr;
  const Route* route = table_->Find(request_.model());
  const bool completion = request_.kind() == inference::v1::REQUEST_KIND_COMPLETION;
  return route == nullptr && completion ? table_->unlisted() : route;
}

// At most, of the answers that the engine generates and keeps to itself (best_of).
int64_t Session::UnseenTokens() const {
  const int64_t each = request_.max_tokens() > 0 ? request_.max_tokens()
                       : route_ != nullptr       ? route_->context_window
                                                 : 0;
  return (request_.samples() - request_.choices()) * each;
}

// Their count comes when all is done, so what they may cost is held before they begin (decisions
// 1).
Task<bool> Session::HoldUnseen() {
  const int64_t unseen = UnseenTokens();
  if (unseen == 0 || co_await hold_->Ensure(unseen, UsageNow())) co_return true;
  failure_ = Refusal(ErrorId::kInsufficientCredits,
                     "The workspace has not enough credit left for this 'best_of'.", "");
  co_return false;
}

TokenMeter::Options Session::MeterOptions(const EngineState* engine) const {
  TokenMeter::Options options;
  options.choices = request_.choices();
  options.prompt_tokens_bound = request_.prompt_tokens_bound();
  options.prompt_tokens_estimate = request_.prompt_tokens_estimate();
  options.unseen_tokens = UnseenTokens();
  options.usage_per_choice = engine && ReportsUsageOnEveryChunk(engine->engine().kind());
  options.prompt_per_choice =
      request_.kind() == inference::v1::REQUEST_KIND_COMPLETION && request_.choices() > 1;
  return options;
}

Task<void> Session::Run() {
  Ended ended = Ended::kFailed;
  if (Prepare()) {
    sink_->OnCancel([self = this] { self->OnCancel(); });
    if (co_await HoldUnseen()) ended = co_await TryEngines();
    sink_->OnCancel({});
  }
  if (sink_->cancelled()) ended = Ended::kGone;
  co_await Finish(ended);
}

void Session::OnCancel() {
  if (attempt_ != nullptr) attempt_->Abort();
}

void Session::Terminate() {
  terminated_ = true;
  if (attempt_ != nullptr) attempt_->Abort();
}

void Session::FailChoice(const Choice& choice) {
  if (choice.why_not == NoEngine::kSaturated) {
    failure_ = Refusal(ErrorId::kRateLimited, "The model is at capacity. Please retry shortly.",
                       "every engine of the pool is full", choice.retry_after_ms);
  } else {
    failure_ = Refusal(ErrorId::kModelNotServing, "", "every engine of the pool is down",
                       choice.retry_after_ms);
  }
}

Task<Session::Ended> Session::TryEngines() {
  std::vector<EnginePointer> tried;
  for (int i = 0; i < host_.settings.tries; ++i) {
    Choice choice = ChooseEngine(route_->engines, tried, host_.clock.MonotonicUs(), ++host_.turn);
    if (choice.engine == nullptr) {
      if (i == 0) FailChoice(choice);  // else the first engine's failure is what the caller hears
      co_return Ended::kFailed;
    }
    if (i > 0) host_.metrics.retries.Increment();
    const Ended ended = co_await TryEngine(*choice.engine);
    choice.engine->Leave();
    const bool failed = ended == Ended::kFailed;
    host_.metrics.CountEngineRequest(
        choice.engine->id(), ended == Ended::kWell   ? "ok"
                             : ended == Ended::kCut  ? "cut_by_credit"
                             : ended == Ended::kGone ? "client_gone"
                                                     : std::string(failure_.error.row().name));
    if (!failed || started_ || !failure_.try_elsewhere || sink_->cancelled()) co_return ended;
    tried.push_back(std::move(choice.engine));
  }
  co_return Ended::kFailed;
}

// Engines may file a request under this header (vLLM does), and two requests of one id there break
// each other. Callers choose x_request_id as they like, so it is made unique (decisions 26).
std::string Session::EngineRequestId() const {
  const auto id = Id::FromBytes(request_.request_id());
  return request_.x_request_id() + (id ? "." + id->ToHex() : "");
}

http::ClientRequest Session::EngineCall(const EngineState& engine) const {
  http::ClientRequest call;
  call.method = "POST";
  call.origin = engine.base().origin;
  call.target = engine.base().path + std::string(EnginePath(request_.kind()));
  call.headers = {{"content-type", "application/json"},
                  {"accept", IsEmbedding(request_) ? "application/json" : "text/event-stream"}};
  if (!engine.engine().api_key().empty()) {
    call.headers.emplace_back("authorization", "Bearer " + engine.engine().api_key());
  }
  if (!request_.x_request_id().empty()) {
    call.headers.emplace_back("x-request-id", EngineRequestId());
  }
  if (!request_.traceparent().empty()) {
    call.headers.emplace_back("traceparent", request_.traceparent());
  }
  call.body =
      BuildEngineBody(request_, engine.engine().kind(),
                      route_->engine_model.empty() ? request_.model() : route_->engine_model);
  call.head_timeout_ms = call.idle_timeout_ms = host_.settings.idle_timeout_ms;
  return call;
}

Task<Session::Ended> Session::TryEngine(EngineState& engine) {
  engine_id_ = engine.id();
  slot_->SetEngine(engine_id_);
  meter_.emplace(MeterOptions(&engine));
  if (sink_->cancelled()) co_return Ended::kGone;

  ChunkReader::Options options{request_.kind(), request_.choices(), route_->context_window};
  EngineAttempt attempt(host_.loop, host_.http, options);
  attempt_ = &attempt;
  Ended ended = Ended::kFailed;
  if (co_await attempt.Open(EngineCall(engine))) {
    engine.OnSuccess();
    accepted_ = true;
    slot_->SetAccepted();
    KeepCount();
    ended = co_await Relay(attempt);
  } else if (attempt.connect_failed()) {
    engine.OnConnectFailure(host_.clock.MonotonicUs());
  }
  attempt_ = nullptr;
  if (sink_->cancelled()) ended = Ended::kGone;
  if (ended == Ended::kFailed) {
    failure_ = attempt.failure();
    if (failure_.not_found && route_->unlisted) {  // decisions 20
      failure_.error = {.id = ErrorId::kModelNotFound,
                        .message = "The model '" + request_.model() + "' is not available.",
                        .internal = std::move(failure_.error.internal)};
    }
    if (terminated_) failure_ = Refusal(ErrorId::kServiceUnavailable, "", "shutting down", 1000);
    if (!started_) accepted_ = false;  // it has failed before any output: nothing is charged for it
  } else if (ended != Ended::kWell) {
    attempt.Abort();
  }
  co_return ended;
}

Task<Session::Ended> Session::Relay(EngineAttempt& attempt) {
  for (;;) {
    batch_.Clear();
    const EngineAttempt::Got got = co_await attempt.Next(batch_);
    Measure();
    if (sink_->cancelled()) co_return Ended::kGone;
    if (!batch_.events.empty()) {
      const Ended ended = co_await Forward();
      if (ended != Ended::kWell) co_return ended;
    }
    KeepCount();
    hold_->AskAhead(UsageNow());
    if (got == EngineAttempt::Got::kFailed) co_return Ended::kFailed;
    if (got == EngineAttempt::Got::kEnd) {
      if (!started_ && !co_await SendStarted()) co_return Ended::kGone;
      co_return Ended::kWell;
    }
  }
}

// Counts what the batch holds, chunk by chunk: a chunk's usage includes its own text.
void Session::Measure() {
  price_.clear();
  size_t at = 0;
  for (const EngineBatch::Chunk& chunk : batch_.chunks) {
    for (; at < chunk.events_end; ++at) meter_->OnDelta(batch_.events[at].delta());
    if (chunk.usage) {
      meter_->OnUsage(*chunk.usage);
      if (meter_->prompt_tokens() > 0) hold_->spending().SetPromptTokens(meter_->prompt_tokens());
    }
    price_.resize(at, meter_->completion_tokens());
  }
}

void Session::KeepCount() {
  const int64_t prompt = meter_->prompt_tokens();
  slot_->SetUsage(prompt > 0 ? prompt : meter_->prompt_tokens_estimate(),
                  meter_->completion_tokens());
}

// For the ledger, which believes only counts that grow: an estimate of the prompt that the engine's
// own count may undercut is not reported while that count is still to come.
common::v1::Usage Session::UsageNow() const {
  common::v1::Usage usage;
  usage.set_prompt_tokens(meter_->prompt_tokens());
  usage.set_completion_tokens(meter_->completion_tokens());
  return usage;
}

Task<bool> Session::SendStarted() {
  started_ = true;
  host_.metrics.time_to_first_token.Observe(
      static_cast<double>(host_.clock.MonotonicUs() - arrived_us_) / 1e6);
  inference::v1::Event event;
  inference::v1::Started& started = *event.mutable_started();
  if (const auto& report = meter_->last_report()) {
    started.set_prompt_tokens(meter_->prompt_tokens());
    started.set_cached_tokens(
        std::clamp<int64_t>(report->cached_tokens, 0, started.prompt_tokens()));
    started.set_cache_write_tokens(std::clamp<int64_t>(
        report->cache_write_tokens, 0, started.prompt_tokens() - started.cached_tokens()));
  }
  return sink_->Send(std::move(event));
}

Task<Session::Ended> Session::Forward() {
  for (size_t i = 0; i < batch_.events.size(); ++i) {
    if (price_[i] > hold_->spending().affordable() &&
        !co_await hold_->Ensure(price_[i], UsageNow())) {
      if (!started_ && !co_await SendStarted()) co_return Ended::kGone;
      co_return Ended::kCut;
    }
    if (!started_ && !co_await SendStarted()) co_return Ended::kGone;
    inference::v1::Event& event = batch_.events[i];
    if (event.delta().finish_reason() != inference::v1::FINISH_REASON_UNSPECIFIED) {
      closed_choices_[event.delta().choice()] = true;
    }
    if (!co_await sink_->Send(std::move(event))) co_return Ended::kGone;
  }
  co_return Ended::kWell;
}

void Session::Heartbeat() {
  if (accepted_ && hold_ != nullptr) hold_->Heartbeat(UsageNow());
}

}  // namespace tollgate::inference_router
