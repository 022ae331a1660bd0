// The metrics of OpenTelemetry's semantic conventions for generative AI, by their Prometheus names,
// so that dashboards for any model server work here. One observation of each per request.
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/observability/metrics.h"
#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// By the conventions: "chat", "text_completion" or "embeddings".
const char* OperationOf(inference::v1::RequestKind kind);
// "vllm", "llamacpp", …
std::string ProviderOf(catalog::v1::EngineKind kind);

struct GenAiAnswer {
  inference::v1::RequestKind kind = inference::v1::REQUEST_KIND_UNSPECIFIED;
  catalog::v1::EngineKind engine = catalog::v1::ENGINE_KIND_UNSPECIFIED;
  // An id of the catalog. Empty: the model is not in it, and its name is the caller's.
  std::string_view model;
  // The name of the error's row; empty for a success.
  std::string_view error;
  int64_t took_us = 0;  // from arrival at the router to the end
  // From arrival to the first output of an answer that the engine streams; 0: none.
  int64_t first_token_us = 0;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
};

class GenAiMetrics {
 public:
  // Tokens are counted when there are any.
  void Observe(const GenAiAnswer& answer);

 private:
  struct Histograms {
    prometheus::Histogram* duration = nullptr;
    prometheus::Histogram* first_token = nullptr;
    prometheus::Histogram* per_token = nullptr;
    prometheus::Histogram* input = nullptr;
    prometheus::Histogram* output = nullptr;
  };
  // Looked up once per set of labels.
  static Histograms Make(const GenAiAnswer& answer);

  std::mutex mutex_;
  std::unordered_map<std::string, Histograms> histograms_;
};

}  // namespace tollgate::inference_router
