// The metrics of OpenTelemetry's semantic conventions for generative AI, under their Prometheus
// names, so that dashboards for other model servers work. Each is observed once per request.
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

// The name by the conventions: "chat", "text_completion" or "embeddings".
const char* OperationOf(inference::v1::RequestKind kind);

struct GenAiAnswer {
  inference::v1::RequestKind kind = inference::v1::REQUEST_KIND_UNSPECIFIED;
  catalog::v1::EngineKind engine = catalog::v1::ENGINE_KIND_UNSPECIFIED;
  // An id of the catalog. Empty if the model is not in the catalog, because its name is then the
  // caller's text.
  std::string_view model;
  // Name of the error's row; empty for a success.
  std::string_view error;
  int64_t took_us = 0;  // from arrival at the router to the end
  // From arrival to the first output, if the engine streams the answer; 0: none.
  int64_t first_token_us = 0;
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
};

class GenAiMetrics {
 public:
  // Token counts of 0 are not observed.
  void Observe(const GenAiAnswer& answer);

 private:
  struct Histograms {
    prometheus::Histogram* duration = nullptr;
    prometheus::Histogram* first_token = nullptr;
    prometheus::Histogram* per_token = nullptr;
    prometheus::Histogram* input = nullptr;
    prometheus::Histogram* output = nullptr;
  };
  // Looks the histograms up, once per set of labels.
  static Histograms Make(const GenAiAnswer& answer);

  std::mutex mutex_;
  std::unordered_map<std::string, Histograms> histograms_;
};

}  // namespace tollgate::inference_router
