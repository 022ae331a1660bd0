// The gateway's metrics, looked up once per loop.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tollgate/common/v1/usage.pb.h"

namespace tollgate::gateway {

struct KeyCacheCounters;

class GatewayMetrics {
 public:
  GatewayMetrics();

  // A request that has been answered. code is empty when it went well. Both texts are of small
  // closed sets.
  void CountRequest(std::string_view endpoint, int status, std::string_view code);
  void ObserveFirstToken(double seconds);
  void CountTokens(const tollgate::common::v1::Usage& usage);
  // The limit or the account that refused, for example "requests" or "no_credit".
  void CountDenial(std::string_view by);
  void CountLimiterFallback() { fallback_.Increment(); }
  void CountClientGone() { client_gone_.Increment(); }
  // Adds what has happened since the last call.
  void TakeKeyCache(const KeyCacheCounters& counters);

 private:
  struct Seen {
    std::string endpoint, code;
    int status;
    prometheus::Counter* counter;
  };
  std::vector<Seen> requests_;
  std::vector<Seen> denials_;
  prometheus::Histogram& first_token_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& completion_tokens_;
  prometheus::Counter& fallback_;
  prometheus::Counter& client_gone_;
  static constexpr int kKeyResults = 6;
  prometheus::Counter* key_results_[kKeyResults];
  int64_t key_last_[kKeyResults] = {};
};

}  // namespace tollgate::gateway
