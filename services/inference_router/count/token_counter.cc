#include "services/inference_router/count/token_counter.h"

#include <utility>
#include <vector>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kTimeoutMs = 3'000;
constexpr size_t kMaxAnswer = 32 << 20;
// After so long an engine may have been replaced by one with a tokenizer.
constexpr int64_t kRememberUs = 5 * 60 * 1'000'000LL;
constexpr size_t kMostRemembered = 1'000;
// On one loop.
constexpr int kMostAtOnce = 16;
// A tokenizer takes them one by one.
constexpr size_t kMostPrompts = 16;

std::string NameOf(const EngineState& engine, const std::string& engine_model) {
  return engine.id() + '\n' + engine_model;
}

}  // namespace

struct TokenCounter::Job {
  inference::v1::CountTokensRequest request;
  std::string engine_model;
  Prompts prompts;  // of a completion
};

Task<inference::v1::CountTokensResponse> TokenCounter::Count(
    std::shared_ptr<const RoutingTable> table, inference::v1::CountTokensRequest request) {
  inference::v1::CountTokensResponse not_counted;
  if (table == nullptr) co_return not_counted;
  const bool completion = request.kind() == inference::v1::REQUEST_KIND_COMPLETION;
  if (!completion && request.kind() != inference::v1::REQUEST_KIND_CHAT) co_return not_counted;
  const Route* route = table->Find(request.model());
  if (route == nullptr && completion) route = table->unlisted();
  if (route == nullptr || route->engines.empty()) co_return not_counted;
  Job job{std::move(request), route->engine_model, {}};
  if (job.engine_model.empty()) job.engine_model = job.request.model();
  if (completion) {
    std::optional<Prompts> prompts = ReadPrompts(job.request.members_json());
    if (!prompts || prompts->texts.size() > kMostPrompts) co_return not_counted;
    job.prompts = *std::move(prompts);
  }
  while (running_ >= kMostAtOnce) {
    if (!co_await free_.WaitFor(kTimeoutMs)) co_return not_counted;
  }
  ++running_;
  auto response = co_await CountAtEngines(*route, job);
  --running_;
  free_.NotifyOne();
  co_return response;
}

Task<inference::v1::CountTokensResponse> TokenCounter::CountAtEngines(const Route& route,
                                                                      const Job& job) {
  inference::v1::CountTokensResponse response;
  EnginePointer tried;
  for (int tries = 0; tries < 2;) {
    const EnginePointer engine = Choose(route, job, tried.get());
    if (engine == nullptr) break;
    const Told told = co_await Ask(job, *engine);
    if (told.kind == Told::kCounted) {
      response.set_counted(true);
      response.set_prompt_tokens(told.tokens);
    }
    if (told.kind == Told::kNoTokenizer) {
      Remember(*engine, job.engine_model);
      continue;  // it is not chosen again, and was no failure
    }
    if (told.kind != Told::kFailed) break;
    tried = engine;
    ++tries;
  }
  co_return response;
}

EnginePointer TokenCounter::Choose(const Route& route, const Job& job, const EngineState* but) {
  const int64_t now_us = clock_.MonotonicUs();
  ++turn_;
  for (size_t i = 0; i < route.engines.size(); ++i) {
    const EnginePointer& engine = route.engines[(i + turn_) % route.engines.size()];
    if (engine.get() != but && MayTokenize(engine->engine().kind()) && engine->Available(now_us) &&
        !KnownWithout(*engine, job.engine_model)) {
      return engine;
    }
  }
  return nullptr;
}

bool TokenCounter::KnownWithout(const EngineState& engine, const std::string& engine_model) const {
  const auto found = without_until_us_.find(NameOf(engine, engine_model));
  return found != without_until_us_.end() && clock_.MonotonicUs() < found->second;
}

void TokenCounter::Remember(const EngineState& engine, const std::string& engine_model) {
  if (without_until_us_.size() >= kMostRemembered) without_until_us_.clear();
  without_until_us_[NameOf(engine, engine_model)] = clock_.MonotonicUs() + kRememberUs;
}

Task<TokenCounter::Told> TokenCounter::Ask(const Job& job, EngineState& engine) {
  if (job.request.kind() == inference::v1::REQUEST_KIND_CHAT) {
    co_return co_await AskChat(job, engine);
  }
  co_return co_await AskPrompts(job, engine);
}

Task<TokenCounter::Told> TokenCounter::AskChat(const Job& job, EngineState& engine) {
  const catalog::v1::EngineKind kind = engine.engine().kind();
  Told told =
      co_await Post(job, engine, ChatCall(kind, job.engine_model, job.request.members_json()));
  if (told.kind != Told::kCounted) co_return told;
  if (NeedsTemplateFirst(kind)) {
    const std::optional<std::string> prompt = ReadTemplated(told.body);
    if (!prompt) co_return Told{Told::kFailed};
    co_return co_await AskPrompt(job, engine, *prompt);
  }
  const std::optional<int64_t> tokens = ReadCount(kind, told.body);
  co_return tokens ? Told{Told::kCounted, *tokens} : Told{Told::kFailed};
}

Task<TokenCounter::Told> TokenCounter::AskPrompts(const Job& job, EngineState& engine) {
  Told sum{Told::kCounted, job.prompts.tokens};
  for (const std::string& text : job.prompts.texts) {
    Told told = co_await AskPrompt(job, engine, text);
    if (told.kind != Told::kCounted) co_return told;
    sum.tokens += told.tokens;
  }
  co_return sum;
}

Task<TokenCounter::Told> TokenCounter::AskPrompt(const Job& job, EngineState& engine,
                                                 const std::string& prompt_json) {
  const catalog::v1::EngineKind kind = engine.engine().kind();
  Told told = co_await Post(job, engine, PromptCall(kind, job.engine_model, prompt_json));
  if (told.kind != Told::kCounted) co_return told;
  const std::optional<int64_t> tokens = ReadCount(kind, told.body);
  co_return tokens ? Told{Told::kCounted, *tokens} : Told{Told::kFailed};
}

Task<TokenCounter::Told> TokenCounter::Post(const Job& job, EngineState& engine,
                                            TokenizerCall call) {
  http::ClientRequest request;
  request.method = "POST";
  request.origin = engine.base().origin;
  request.target = engine.base().path + call.target;
  request.headers = {{"content-type", "application/json"}};
  if (!engine.engine().api_key().empty()) {
    request.headers.emplace_back("authorization", "Bearer " + engine.engine().api_key());
  }
  if (!job.request.x_request_id().empty()) {
    request.headers.emplace_back("x-request-id", job.request.x_request_id());
  }
  request.body = std::move(call.body);
  request.head_timeout_ms = request.idle_timeout_ms = kTimeoutMs;
  auto answer = co_await http_.Fetch(std::move(request), kMaxAnswer);
  if (!answer.ok()) {
    if (answer.error().kind == http::ClientError::Kind::kConnect) {
      engine.OnConnectFailure(clock_.MonotonicUs());
    }
    co_return Told{Told::kFailed};
  }
  const int status = answer->head.status;
  if (status >= 200 && status < 300) {
    co_return Told{Told::kCounted, 0, std::move(answer->body)};
  }
  if (status == 404 || status == 405 || status == 501) co_return Told{Told::kNoTokenizer};
  if (status == 429 || status >= 500) co_return Told{Told::kFailed};
  co_return Told{Told::kRefused};
}

}  // namespace tollgate::inference_router
