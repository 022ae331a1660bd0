// The gateway's metrics. One instance per loop, which caches the counters it has looked up.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/coding/body_decoder.h"
#include "tollgate/common/v1/usage.pb.h"

namespace tollgate::gateway {

struct KeyCacheCounters;

class GatewayMetrics {
 public:
  GatewayMetrics();

  // Counts a response. code: the error code, empty for a success. endpoint and code come from small
  // closed sets.
  void CountRequest(std::string_view endpoint, int status, std::string_view code);
  void ObserveFirstToken(double seconds);
  void CountTokens(const tollgate::common::v1::Usage& usage);
  void CountLimiterFallback() { fallback_.Increment(); }
  // Counts a body that is too large to be decoded on a loop.
  void CountLargeBody(bool decoded) { (decoded ? large_decoded_ : large_refused_).Increment(); }
  // Counts a body with a content coding. coding: a coding::Coding.
  void CountCodedBody(size_t coding, bool decoded) { coded_bodies_[coding][decoded]->Increment(); }
  // Counts a request whose router was lost before anything was sent to the caller.
  void CountMove(bool moved) { (moved ? moved_ : not_moved_).Increment(); }
  // Counts a request that went on to another model. stage: "limits" before it was sent, else
  // "engine".
  void CountFallBack(std::string_view stage);
  void CountClientDisconnect() { client_disconnects_.Increment(); }
  // Adds the difference from the last call's counters.
  void UpdateKeyCache(const KeyCacheCounters& counters);

 private:
  struct CachedCounter {
    std::string endpoint, code;
    int status;
    prometheus::Counter* counter;
  };
  std::vector<CachedCounter> requests_;
  prometheus::Histogram& first_token_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Counter& completion_tokens_;
  prometheus::Counter& fallback_;
  prometheus::Counter& client_disconnects_;
  prometheus::Counter& moved_;
  prometheus::Counter& not_moved_;
  prometheus::Counter& version_reads_;
  prometheus::Counter& large_decoded_;
  prometheus::Counter& large_refused_;
  prometheus::Counter* coded_bodies_[coding::kCodings][2];
  int64_t version_reads_last_ = 0;
  static constexpr int kKeyResults = 7;
  prometheus::Counter* key_results_[kKeyResults];
  int64_t key_last_[kKeyResults] = {};
};

}  // namespace tollgate::gateway
