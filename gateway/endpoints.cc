#include "gateway/endpoints.h"

#include "gateway/handlers/answer_health.h"
#include "gateway/handlers/count_tokens.h"
#include "gateway/handlers/list_models.h"
#include "gateway/handlers/report_usage.h"
#include "gateway/handlers/show_generation.h"
#include "gateway/pipeline/run.h"
#include "gateway/surfaces/chat_completions/chat_surface.h"
#include "gateway/surfaces/completions/completions_surface.h"
#include "gateway/surfaces/embeddings/embeddings_surface.h"
#include "gateway/surfaces/messages/messages_surface.h"
#include "gateway/surfaces/responses/responses_surface.h"

namespace tollgate::gateway {

namespace {

using Handler = std::function<Task<void>(Exchange&, const Endpoint&)>;

// The lambdas below are not coroutines: their captures are needed only until the coroutine has been
// created.
Handler Inference(const WorkerForLoop& worker_for_loop, const Surface& surface) {
  return [worker_for_loop, &surface](Exchange& exchange, const Endpoint& endpoint) {
    return RunInference(worker_for_loop(exchange.loop()), surface, exchange, endpoint);
  };
}

Handler Count(const WorkerForLoop& worker_for_loop, const Surface& surface) {
  return [worker_for_loop, &surface](Exchange& exchange, const Endpoint& endpoint) {
    return CountTokens(worker_for_loop(exchange.loop()), surface, exchange, endpoint);
  };
}

Handler Models(const WorkerForLoop& worker_for_loop) {
  return [worker_for_loop](Exchange& exchange, const Endpoint& endpoint) {
    return ListModels(worker_for_loop(exchange.loop()), exchange, endpoint);
  };
}

Handler Usage(const WorkerForLoop& worker_for_loop) {
  return [worker_for_loop](Exchange& exchange, const Endpoint& endpoint) {
    return ReportUsage(worker_for_loop(exchange.loop()), exchange, endpoint);
  };
}

Handler Generation(const WorkerForLoop& worker_for_loop) {
  return [worker_for_loop](Exchange& exchange, const Endpoint& endpoint) {
    return ShowGeneration(worker_for_loop(exchange.loop()), exchange, endpoint);
  };
}

Handler Health(std::function<bool()> accepting) {
  return [accepting = std::move(accepting)](Exchange& exchange, const Endpoint& endpoint) {
    return AnswerHealth(accepting(), exchange, endpoint);
  };
}

}  // namespace

EndpointTable MakeEndpoints(WorkerForLoop worker_for_loop, std::function<bool()> accepting) {
  using enum CredentialRule;
  constexpr Family kOpenAi = Family::kOpenAi;
  EndpointTable table;
  table.Add({"POST", "/v1/chat/completions", "chat_completions", kOpenAi, kBearer,
             Inference(worker_for_loop, ChatSurface())});
  table.Add({"POST", "/v1/completions", "completions", kOpenAi, kBearer,
             Inference(worker_for_loop, CompletionsSurface())});
  table.Add({"POST", "/v1/embeddings", "embeddings", kOpenAi, kBearer,
             Inference(worker_for_loop, EmbeddingsSurface())});
  table.Add({"POST", "/v1/messages", "messages", Family::kMessages, kBearerOrApiKey,
             Inference(worker_for_loop, MessagesSurface())});
  table.Add({"POST", "/v1/messages/count_tokens", "count_tokens", Family::kMessages,
             kBearerOrApiKey, Count(worker_for_loop, CountTokensSurface())});
  table.Add({"POST", "/v1/responses", "responses", kOpenAi, kBearer,
             Inference(worker_for_loop, ResponsesSurface())});
  table.Add({"POST", "/v1/responses/input_tokens", "input_tokens", kOpenAi, kBearer,
             Count(worker_for_loop, InputTokensSurface())});
  table.Add({"GET", "/v1/models", "models", kOpenAi, kOptionalBearer, Models(worker_for_loop)});
  table.Add(
      {"GET", "/openai/v1/models", "models", kOpenAi, kOptionalBearer, Models(worker_for_loop)});
  table.Add({"GET", "/api/v1/usage", "usage", kOpenAi, kBearer, Usage(worker_for_loop)});
  table.Add(
      {"GET", "/api/v1/generation", "generation", kOpenAi, kBearer, Generation(worker_for_loop)});
  table.Add({"GET", "/healthz", "healthz", kOpenAi, kNone, Health(std::move(accepting)), true});
  return table;
}

}  // namespace tollgate::gateway
