#include "gateway/worker/metrics.h"

#include "common/observability/latency_bounds.h"
#include "common/observability/metrics.h"
#include "gateway/worker/key_cache.h"

namespace tollgate::gateway {

namespace {

constexpr const char* kMoves = "tollgate_gateway_moves_total";
constexpr const char* kMovesHelp =
    "Requests whose inference router was lost before anything was sent to the caller: moved to "
    "another router, or refused because billing did not allow the move.";
constexpr const char* kLargeBodies = "tollgate_gateway_large_bodies_total";
constexpr const char* kLargeBodiesHelp =
    "Request bodies too large for an event loop: decoded on the thread pool, or refused with 503 "
    "because too many were waiting.";
constexpr const char* kKeyHelp = "Virtual key checks, by the result of the loop's cache.";

prometheus::Counter& FallBacks(const std::string& stage) {
  return metrics::Counter("tollgate_gateway_model_fallbacks_total",
                          "Requests that went on to another model because a model's limits did not "
                          "admit them or its engines failed.",
                          {{"stage", stage}});
}

}  // namespace

GatewayMetrics::GatewayMetrics()
    : first_token_(metrics::Histogram("tollgate_gateway_first_token_seconds",
                                      "Time from a request's arrival to its first token.",
                                      metrics::FirstTokenBounds())),
      prompt_tokens_(metrics::Counter("tollgate_gateway_tokens_total",
                                      "Tokens of finished requests.", {{"kind", "prompt"}})),
      completion_tokens_(metrics::Counter("tollgate_gateway_tokens_total",
                                          "Tokens of finished requests.",
                                          {{"kind", "completion"}})),
      fallback_(metrics::Counter(
          "tollgate_gateway_limiter_fallback_total",
          "Requests checked against local limits because the rate limiter was unreachable.")),
      client_disconnects_(metrics::Counter("tollgate_gateway_client_gone_total",
                                           "Requests whose client disconnected before the end.")),
      moved_(metrics::Counter(kMoves, kMovesHelp, {{"result", "moved"}})),
      not_moved_(metrics::Counter(kMoves, kMovesHelp, {{"result", "refused"}})),
      version_reads_(metrics::Counter(
          "tollgate_gateway_key_version_reads_total",
          "Reads of auth's version before a key that is missing from the filter is refused.")),
      large_decoded_(metrics::Counter(kLargeBodies, kLargeBodiesHelp, {{"result", "decoded"}})),
      large_refused_(metrics::Counter(kLargeBodies, kLargeBodiesHelp, {{"result", "refused"}})) {
  for (int i = 0; i < coding::kCodings; ++i) {
    const std::string name(coding::CodingName(static_cast<coding::Coding>(i)));
    for (const bool decoded : {false, true}) {
      coded_bodies_[i][decoded] =
          &metrics::Counter("tollgate_gateway_coded_bodies_total",
                            "Request bodies with a Content-Encoding, decoded or refused.",
                            {{"coding", name}, {"result", decoded ? "decoded" : "refused"}});
    }
  }
  static constexpr const char* kResults[kKeyResults] = {
      "hit", "negative_hit", "lookup", "stale", "unavailable", "throttled", "filtered"};
  for (int i = 0; i < kKeyResults; ++i) {
    key_results_[i] =
        &metrics::Counter("tollgate_gateway_key_cache_total", kKeyHelp, {{"result", kResults[i]}});
  }
  // Creates every series at the start, so that alerts see it grow from zero.
  for (const char* stage : {"limits", "engine"}) FallBacks(stage);
}

void GatewayMetrics::CountRequest(std::string_view endpoint, int status, std::string_view code) {
  for (const CachedCounter& cached : requests_) {
    if (cached.status == status && cached.endpoint == endpoint && cached.code == code) {
      cached.counter->Increment();
      return;
    }
  }
  prometheus::Counter& counter =
      metrics::Counter("tollgate_gateway_requests_total", "Requests by endpoint and outcome.",
                       {{"endpoint", std::string(endpoint)},
                        {"status", std::to_string(status)},
                        {"code", std::string(code)}});
  counter.Increment();
  requests_.push_back({std::string(endpoint), std::string(code), status, &counter});
}

void GatewayMetrics::ObserveFirstToken(double seconds) { first_token_.Observe(seconds); }

void GatewayMetrics::CountTokens(const tollgate::common::v1::Usage& usage) {
  prompt_tokens_.Increment(static_cast<double>(usage.prompt_tokens()));
  completion_tokens_.Increment(static_cast<double>(usage.completion_tokens()));
}

void GatewayMetrics::CountFallBack(std::string_view stage) {
  FallBacks(std::string(stage)).Increment();
}

void GatewayMetrics::UpdateKeyCache(const KeyCacheCounters& counters) {
  const int64_t now[kKeyResults] = {counters.hits,    counters.negative_hits, counters.lookups,
                                    counters.stale,   counters.unavailable,   counters.throttled,
                                    counters.filtered};
  for (int i = 0; i < kKeyResults; ++i) {
    if (now[i] == key_last_[i]) continue;
    key_results_[i]->Increment(static_cast<double>(now[i] - key_last_[i]));
    key_last_[i] = now[i];
  }
  if (counters.version_reads != version_reads_last_) {
    version_reads_.Increment(static_cast<double>(counters.version_reads - version_reads_last_));
    version_reads_last_ = counters.version_reads;
  }
}

}  // namespace tollgate::gateway
