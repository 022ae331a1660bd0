#include "gateway/endpoints.h"

#include "gateway/handlers/count_tokens.h"
#include "gateway/handlers/list_models.h"
#include "gateway/handlers/report_usage.h"
#include "gateway/pipeline/stages.h"
#include "gateway/surfaces/chat_completions/chat_surface.h"
#include "gateway/surfaces/completions/completions_surface.h"
#include "gateway/surfaces/embeddings/embeddings_surface.h"
#include "gateway/surfaces/messages/messages_surface.h"
#include "gateway/surfaces/responses/responses_surface.h"

namespace tollgate::gateway {

namespace {

using Handler = std::function<Task<void>(Exchange&, const Endpoint&)>;

// Not coroutines themselves: what the lambdas capture only has to live until the coroutine is made.
Handler Inference(const WorkerOf& worker_of, const Surface& surface) {
  return [worker_of, &surface](Exchange& exchange, const Endpoint& endpoint) {
    return RunInference(worker_of(exchange.loop()), surface, exchange, endpoint);
  };
}

Handler Count(const WorkerOf& worker_of) {
  return [worker_of](Exchange& exchange, const Endpoint& endpoint) {
    return CountTokens(worker_of(exchange.loop()), CountTokensSurface(), exchange, endpoint);
  };
}

Handler Models(const WorkerOf& worker_of) {
  return [worker_of](Exchange& exchange, const Endpoint& endpoint) {
    return ListModels(worker_of(exchange.loop()), exchange, endpoint);
  };
}

Handler Usage(const WorkerOf& worker_of) {
  return [worker_of](Exchange& exchange, const Endpoint& endpoint) {
    return ReportUsage(worker_of(exchange.loop()), exchange, endpoint);
  };
}

}  // namespace

EndpointTable MakeEndpoints(WorkerOf worker_of) {
  using enum CredentialRule;
  constexpr Family kChat = Family::kOpenAi;
  EndpointTable table;
  table.Add({"POST", "/v1/chat/completions", "chat_completions", kChat, kBearer,
             Inference(worker_of, ChatSurface())});
  table.Add({"POST", "/v1/completions", "completions", kChat, kBearer,
             Inference(worker_of, CompletionsSurface())});
  table.Add({"POST", "/v1/embeddings", "embeddings", kChat, kBearer,
             Inference(worker_of, EmbeddingsSurface())});
  table.Add({"POST", "/v1/messages", "messages", Family::kMessages, kBearerOrApiKey,
             Inference(worker_of, MessagesSurface())});
  table.Add({"POST", "/v1/messages/count_tokens", "count_tokens", Family::kMessages,
             kBearerOrApiKey, Count(worker_of)});
  table.Add({"POST", "/v1/responses", "responses", kChat, kBearer,
             Inference(worker_of, ResponsesSurface())});
  table.Add({"GET", "/v1/models", "models", kChat, kOptionalBearer, Models(worker_of)});
  table.Add({"GET", "/openai/v1/models", "models", kChat, kOptionalBearer, Models(worker_of)});
  table.Add({"GET", "/api/v1/usage", "usage", kChat, kBearer, Usage(worker_of)});
  return table;
}

}  // namespace tollgate::gateway
