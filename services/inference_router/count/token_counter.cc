#include "services/inference_router/count/token_counter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/engines/kinds.h"
#include "services/inference_router/balancer/fetch_within.h"
#include "services/inference_router/count/prompt_text.h"

namespace tollgate::inference_router {
namespace {

// A response has at most 60 bytes per token, and at most as many tokens as the prompt has bytes,
// plus those of the chat template.
constexpr size_t kMaxResponse = 32 << 20;
constexpr size_t kResponseBytesPerByte = 64;
constexpr size_t kTemplateTokens = 8'192;
// Time after which an engine without a tokenizer is asked again, because it may have been replaced.
constexpr int64_t kNoTokenizerUs = 5 * 60 * 1'000'000LL;
constexpr size_t kMaxRemembered = 1'000;
// Limit per loop.
constexpr int kMaxConcurrent = 16;
// Each prompt of a completion needs one call.
constexpr size_t kMaxPrompts = 16;

std::string KeyOf(const EngineState& engine, const std::string& engine_model) {
  return engine.id() + '\n' + engine_model;
}

// The caller only asks whether any prompt is too long, which the longest ones decide.
void KeepLongest(std::vector<std::string>& texts) {
  std::nth_element(texts.begin(), texts.begin() + kMaxPrompts, texts.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  texts.resize(kMaxPrompts);
}

}  // namespace

struct TokenCounter::Job {
  inference::v1::CountTokensRequest request;
  std::string engine_model;
  Prompts prompts;  // set for a completion or an embedding
  int64_t deadline_us = 0;

  int64_t MaxTokens() const {
    return static_cast<int64_t>(request.members_json().size() + kTemplateTokens);
  }
  size_t MaxResponse() const {
    return std::min(kMaxResponse, static_cast<size_t>(MaxTokens()) * kResponseBytesPerByte);
  }
};

template <typename Function>
Task<std::optional<std::invoke_result_t<Function&>>> TokenCounter::Decode(size_t bytes,
                                                                          Function function) {
  if (bytes <= kMaxBytesDecodedOnLoop) co_return function();
  co_return co_await RunOnPool(*decoders_, loop_, std::move(function));
}

Task<inference::v1::CountTokensResponse> TokenCounter::Count(
    std::shared_ptr<const RoutingTable> table, inference::v1::CountTokensRequest request) {
  const auto job = std::make_shared<Job>();
  job->request = std::move(request);
  auto response = co_await CountJob(std::move(table), job);
  if (response.counted() || !job->request.or_least()) co_return response;
  auto least = [job] { return LeastTokens(job->request.kind(), job->request.members_json()); };
  const auto tokens = co_await Decode(job->request.members_json().size(), std::move(least));
  response.set_least_prompt_tokens(tokens.value_or(0));
  co_return response;
}

Task<inference::v1::CountTokensResponse> TokenCounter::CountJob(
    std::shared_ptr<const RoutingTable> table, std::shared_ptr<Job> job) {
  inference::v1::CountTokensResponse not_counted;
  const inference::v1::RequestKind kind = job->request.kind();
  if (table == nullptr || kind == inference::v1::REQUEST_KIND_UNSPECIFIED) co_return not_counted;
  const bool completion = kind == inference::v1::REQUEST_KIND_COMPLETION;
  const bool chat = kind == inference::v1::REQUEST_KIND_CHAT;
  const Route* route = table->Find(job->request.model());
  if (route == nullptr && completion) route = table->unlisted();
  if (route == nullptr || route->engines.empty()) co_return not_counted;
  job->engine_model = route->engine_model.empty() ? job->request.model() : route->engine_model;
  if (!chat) {
    auto read = [job] {
      return ReadPrompts(job->request.kind(), job->request.members_json(),
                         job->request.only_above_tokens());
    };
    auto prompts = co_await Decode(job->request.members_json().size(), std::move(read));
    if (!prompts || !*prompts) co_return not_counted;
    if ((*prompts)->texts.size() > kMaxPrompts) {
      if (job->request.only_above_tokens() <= 0) co_return not_counted;
      KeepLongest((*prompts)->texts);
    }
    job->prompts = **std::move(prompts);
  }
  while (running_ >= kMaxConcurrent) {
    if (!co_await slot_free_.WaitFor(time_limits_.wait_ms)) co_return not_counted;
  }
  job->deadline_us = clock_.MonotonicUs() + time_limits_.count_ms * 1000;
  ++running_;
  auto response = co_await CountOnEngines(*route, job);
  --running_;
  slot_free_.NotifyOne();
  co_return response;
}

Task<inference::v1::CountTokensResponse> TokenCounter::CountOnEngines(const Route& route,
                                                                      JobPointer job) {
  inference::v1::CountTokensResponse response;
  EnginePointer tried;
  for (int tries = 0; tries < 2;) {
    const EnginePointer engine = Select(route, *job, tried.get());
    if (engine == nullptr) break;
    EngineCount count = co_await CountOn(job, *engine);
    // A token has at least one byte, so a larger count would refuse prompts that fit.
    if (count.kind == EngineCount::kCounted && count.tokens > job->MaxTokens()) {
      count.kind = EngineCount::kFailed;
      if (on_implausible_) on_implausible_();
    }
    if (count.kind == EngineCount::kCounted) {
      response.set_counted(true);
      response.set_prompt_tokens(count.tokens);
      response.set_longest_prompt_tokens(count.longest);
    }
    if (count.kind == EngineCount::kNoTokenizer) {
      RememberNoTokenizer(*engine, job->engine_model);
      continue;  // not selected again; not a failure
    }
    if (count.kind != EngineCount::kFailed) break;
    tried = engine;
    ++tries;
  }
  co_return response;
}

EnginePointer TokenCounter::Select(const Route& route, const Job& job,
                                   const EngineState* excluded) {
  const int64_t now_us = clock_.MonotonicUs();
  ++rotation_;
  for (size_t i = 0; i < route.engines.size(); ++i) {
    const EnginePointer& engine = route.engines[(i + rotation_) % route.engines.size()];
    if (engine.get() != excluded && engines::Of(engine->engine().kind()).tokenizer.any() &&
        engine->Available(now_us) && !LacksTokenizer(*engine, job.engine_model)) {
      return engine;
    }
  }
  return nullptr;
}

bool TokenCounter::LacksTokenizer(const EngineState& engine,
                                  const std::string& engine_model) const {
  const auto found = no_tokenizer_until_us_.find(KeyOf(engine, engine_model));
  return found != no_tokenizer_until_us_.end() && clock_.MonotonicUs() < found->second;
}

void TokenCounter::RememberNoTokenizer(const EngineState& engine, const std::string& engine_model) {
  if (no_tokenizer_until_us_.size() >= kMaxRemembered) no_tokenizer_until_us_.clear();
  no_tokenizer_until_us_[KeyOf(engine, engine_model)] = clock_.MonotonicUs() + kNoTokenizerUs;
}

Task<TokenCounter::EngineCount> TokenCounter::CountOn(JobPointer job, EngineState& engine) {
  if (job->request.kind() == inference::v1::REQUEST_KIND_CHAT) {
    co_return co_await CountChat(std::move(job), engine);
  }
  co_return co_await CountPrompts(*job, engine);
}

Task<TokenCounter::EngineCount> TokenCounter::CountChat(JobPointer job, EngineState& engine) {
  const catalog::v1::EngineKind kind = engine.engine().kind();
  auto make = [job, kind] {
    const auto& request = job->request;
    const auto texts = request.text_only() ? TextOnly(request.members_json()) : std::nullopt;
    return ChatCall(kind, job->engine_model, texts ? *texts : request.members_json(),
                    request.reasoning());
  };
  auto call = co_await Decode(job->request.members_json().size(), std::move(make));
  if (!call) co_return EngineCount{EngineCount::kRefused};
  EngineCount count = co_await Post(*job, engine, *std::move(call));
  if (count.kind != EngineCount::kCounted) co_return count;
  if (!engines::Of(kind).tokenizer.template_first)
    co_return co_await Read(kind, std::move(count.body));
  const size_t bytes = count.body.size();
  auto read = [body = std::move(count.body)] { return ReadTemplated(body); };
  const auto prompt = co_await Decode(bytes, std::move(read));
  if (!prompt) co_return EngineCount{EngineCount::kRefused};
  if (!*prompt) co_return EngineCount{EngineCount::kFailed};
  co_return co_await CountPrompt(*job, engine, **prompt);
}

Task<TokenCounter::EngineCount> TokenCounter::Read(catalog::v1::EngineKind kind, std::string body) {
  const size_t bytes = body.size();
  auto read = [kind, body = std::move(body)] { return ReadCount(kind, body); };
  const auto tokens = co_await Decode(bytes, std::move(read));
  if (!tokens) co_return EngineCount{EngineCount::kRefused};
  co_return *tokens ? EngineCount{EngineCount::kCounted, **tokens, **tokens}
                    : EngineCount{EngineCount::kFailed};
}

Task<TokenCounter::EngineCount> TokenCounter::CountPrompts(const Job& job, EngineState& engine) {
  EngineCount sum{EngineCount::kCounted, job.prompts.tokens, job.prompts.longest_tokens};
  for (const std::string& text : job.prompts.texts) {
    EngineCount count = co_await CountPrompt(job, engine, text);
    if (count.kind != EngineCount::kCounted) co_return count;
    if (__builtin_add_overflow(sum.tokens, count.tokens, &sum.tokens)) sum.tokens = INT64_MAX;
    sum.longest = std::max(sum.longest, count.tokens);
  }
  co_return sum;
}

Task<TokenCounter::EngineCount> TokenCounter::CountPrompt(const Job& job, EngineState& engine,
                                                          const std::string& prompt_json) {
  const catalog::v1::EngineKind kind = engine.engine().kind();
  EngineCount count = co_await Post(job, engine, PromptCall(kind, job.engine_model, prompt_json));
  if (count.kind != EngineCount::kCounted) co_return count;
  co_return co_await Read(kind, std::move(count.body));
}

Task<TokenCounter::EngineCount> TokenCounter::Post(const Job& job, EngineState& engine,
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
  request.head_timeout_ms = request.idle_timeout_ms = time_limits_.wait_ms;
  const int64_t left_ms = (job.deadline_us - clock_.MonotonicUs()) / 1000;
  if (left_ms <= 0) co_return EngineCount{EngineCount::kFailed};
  auto answer = co_await FetchWithin(loop_, http_, std::move(request), job.MaxResponse(),
                                     std::min(time_limits_.call_ms, left_ms));
  if (!answer.ok()) {
    if (answer.error().kind == http::ClientError::Kind::kConnect) {
      engine.OnConnectFailure(clock_.MonotonicUs());
    }
    co_return EngineCount{EngineCount::kFailed};
  }
  const int status = answer->head.status;
  if (status >= 200 && status < 300) {
    co_return EngineCount{EngineCount::kCounted, 0, 0, std::move(answer->body)};
  }
  if (status == 404 || status == 405 || status == 501)
    co_return EngineCount{EngineCount::kNoTokenizer};
  if (status == 429 || status >= 500) co_return EngineCount{EngineCount::kFailed};
  co_return EngineCount{EngineCount::kRefused};
}

}  // namespace tollgate::inference_router
