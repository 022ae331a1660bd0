#include "gateway/endpoints.h"

#include "gateway/list_models.h"
#include "gateway/pipeline/stages.h"
#include "gateway/surfaces/chat_completions/chat_surface.h"

namespace tollgate::gateway {

namespace {

using Handler = std::function<Task<void>(Exchange&, const Endpoint&)>;

// Not coroutines themselves: what the lambdas capture only has to live until the coroutine is made.
Handler Inference(const WorkerOf& worker_of, const Surface& surface) {
  return [worker_of, &surface](Exchange& exchange, const Endpoint& endpoint) {
    return RunInference(worker_of(exchange.loop()), surface, exchange, endpoint);
  };
}

Handler Models(const WorkerOf& worker_of) {
  return [worker_of](Exchange& exchange, const Endpoint& endpoint) {
    return ListModels(worker_of(exchange.loop()), exchange, endpoint);
  };
}

}  // namespace

EndpointTable MakeEndpoints(WorkerOf worker_of) {
  using enum CredentialRule;
  constexpr Family kChat = Family::kOpenAi;
  EndpointTable table;
  table.Add({"POST", "/v1/chat/completions", "chat_completions", kChat, kBearer,
             Inference(worker_of, ChatSurface())});
  table.Add({"GET", "/v1/models", "models", kChat, kOptionalBearer, Models(worker_of)});
  table.Add({"GET", "/openai/v1/models", "models", kChat, kOptionalBearer, Models(worker_of)});
  return table;
}

}  // namespace tollgate::gateway
