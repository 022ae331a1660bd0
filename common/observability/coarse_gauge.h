// Part of a gauge for an amount that changes with every token or message. It is published only in
// steps, so that a change costs one addition.
#pragma once

#include <prometheus/gauge.h>

#include <cstdint>

namespace tollgate::metrics {

// For one thread. Several instances may share a gauge, which shows their sum with an error below
// one step each.
class CoarseGauge {
 public:
  static constexpr int64_t kStepBytes = 64 * 1024;

  explicit CoarseGauge(prometheus::Gauge& gauge) : gauge_(gauge) {}
  ~CoarseGauge() { Publish(0); }
  CoarseGauge(const CoarseGauge&) = delete;
  CoarseGauge& operator=(const CoarseGauge&) = delete;

  void Add(int64_t bytes) {
    bytes_ += bytes;
    const int64_t off = bytes_ - published_;
    // Zero is published exactly: an idle process shows no remainder.
    if (off >= kStepBytes || off <= -kStepBytes || bytes_ == 0) Publish(bytes_);
  }
  int64_t bytes() const { return bytes_; }

 private:
  void Publish(int64_t bytes) {
    if (bytes == published_) return;
    gauge_.Increment(static_cast<double>(bytes - published_));
    published_ = bytes;
  }

  prometheus::Gauge& gauge_;
  int64_t bytes_ = 0;
  int64_t published_ = 0;
};

}  // namespace tollgate::metrics
