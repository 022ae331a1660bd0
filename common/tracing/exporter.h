// The thread that sends finished spans to the collector. It never blocks requests: while the
// collector is unreachable, spans stay in the bounded queue, and it retries with growing pauses.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "common/tracing/otlp.h"
#include "common/tracing/span_queue.h"

namespace grpc {
class ChannelCredentials;
}
namespace prometheus {
class Counter;
}

namespace tollgate::tracing {

// Created before the first span, so that alerts see the counters rise from zero.
struct ExportMetrics {
  ExportMetrics();
  // Spans by outcome.
  prometheus::Counter& exported;
  prometheus::Counter& queue_full;
  prometheus::Counter& refused;
  prometheus::Counter& stopped;
  prometheus::Counter& failed_calls;
};

class Exporter {
 public:
  // Maximum of spans in a message, and how long the first one waits for more.
  static constexpr size_t kMostSpans = 512;
  static constexpr int64_t kLingerMs = 1'000;
  static constexpr int64_t kCallMs = 5'000;

  // target: a gRPC target. queue and metrics must outlive the exporter.
  Exporter(std::string target, std::shared_ptr<grpc::ChannelCredentials> credentials,
           ProcessName process, SpanQueue& queue, ExportMetrics& metrics);
  ~Exporter();  // as Stop(0)
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // Closes the queue and sends the remaining spans within this time, with one attempt each.
  void Stop(int64_t timeout_ms);

 private:
  class Call;
  void Main();
  // Sends the message until the collector has accepted or finally refused it, or the exporter
  // stops.
  void Deliver(const otlp::v1::ExportRequest& message, size_t spans);
  // Returns false if Stop was called.
  bool Pause(int64_t ms);
  int64_t StopDeadlineUs() const;  // 0: Stop was not called
  void NoteFailure(const std::string& reason);
  void NoteSuccess();

  const std::string target_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const ProcessName process_;
  SpanQueue& queue_;
  ExportMetrics& metrics_;
  bool failing_ = false;  // used by the thread only

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  int64_t stop_deadline_us_ = 0;
  std::shared_ptr<Call> call_;  // set during a call
  const std::unique_ptr<struct CollectorStub> stub_;
  std::thread thread_;
};

}  // namespace tollgate::tracing
