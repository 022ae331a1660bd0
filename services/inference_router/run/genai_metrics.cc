#include "services/inference_router/run/genai_metrics.h"

#include <vector>

#include "common/engines/kinds.h"
#include "common/observability/latency_bounds.h"

namespace tollgate::inference_router {
namespace {

// Bounds given by the conventions.
const std::vector<double>& DurationBounds() {
  static const auto* bounds =
      new std::vector<double>{0.01, 0.02, 0.04,  0.08,  0.16,  0.32,  0.64, 1.28,
                              2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 300,  1200};
  return *bounds;
}

const std::vector<double>& PerTokenBounds() {
  static const auto* bounds = new std::vector<double>{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
                                                      0.3,  0.4,   0.5,  0.75,  1.0, 2.5};
  return *bounds;
}

const std::vector<double>& TokenBounds() {
  static const auto* bounds = new std::vector<double>{
      1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864};
  return *bounds;
}

}  // namespace

const char* OperationOf(inference::v1::RequestKind kind) {
  switch (kind) {
    case inference::v1::REQUEST_KIND_COMPLETION:
      return "text_completion";
    case inference::v1::REQUEST_KIND_EMBEDDING:
      return "embeddings";
    default:
      return "chat";
  }
}

GenAiMetrics::Histograms GenAiMetrics::Make(const GenAiAnswer& answer) {
  metrics::Labels labels{
      {"gen_ai_operation_name", OperationOf(answer.kind)},
      {"gen_ai_provider_name", std::string(engines::Of(answer.engine).name)},
      {"gen_ai_request_model", answer.model.empty() ? "unlisted" : std::string(answer.model)}};
  Histograms made;
  made.first_token = &metrics::Histogram("gen_ai_server_time_to_first_token_seconds",
                                         "Time from a request's arrival at the router to its first "
                                         "token, for answers that the engine streams.",
                                         metrics::FirstTokenBounds(), labels);
  made.per_token =
      &metrics::Histogram("gen_ai_server_time_per_output_token_seconds",
                          "Time per token after the first, for answers that the engine streams.",
                          PerTokenBounds(), labels);
  metrics::Labels typed = labels;
  for (const char* type : {"input", "output"}) {
    typed["gen_ai_token_type"] = type;
    (made.input == nullptr ? made.input : made.output) = &metrics::Histogram(
        "gen_ai_client_token_usage", "Tokens of a charged answer, by kind: input or output.",
        TokenBounds(), typed);
  }
  labels["error_type"] = std::string(answer.error);
  made.duration = &metrics::Histogram(
      "gen_ai_server_request_duration_seconds",
      "Time from a request's arrival at the router to the end of its answer, or to its error.",
      DurationBounds(), labels);
  return made;
}

void GenAiMetrics::Observe(const GenAiAnswer& answer) {
  std::string key(answer.model);
  key += '\n';
  key += answer.error;
  key += static_cast<char>('0' + answer.kind);
  key += static_cast<char>('0' + answer.engine);
  Histograms found;
  {
    std::lock_guard lock(mutex_);
    Histograms& slot = histograms_[key];
    if (slot.duration == nullptr) slot = Make(answer);
    found = slot;
  }
  found.duration->Observe(static_cast<double>(answer.took_us) / 1e6);
  if (answer.prompt_tokens > 0) found.input->Observe(static_cast<double>(answer.prompt_tokens));
  if (answer.completion_tokens > 0) {
    found.output->Observe(static_cast<double>(answer.completion_tokens));
  }
  if (answer.first_token_us <= 0) return;
  found.first_token->Observe(static_cast<double>(answer.first_token_us) / 1e6);
  if (answer.completion_tokens < 2) return;
  found.per_token->Observe(static_cast<double>(answer.took_us - answer.first_token_us) / 1e6 /
                           static_cast<double>(answer.completion_tokens - 1));
}

}  // namespace tollgate::inference_router
