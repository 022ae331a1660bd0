// The thread that sends finished spans to the collector. Nothing waits for it: while the collector
// is unreachable the spans wait, as far as the queue goes, and it tries again with growing pauses.
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

// Made before anything is counted, so that alerts see them grow from zero.
struct ExportMetrics {
  ExportMetrics();
  // Spans, by what has become of them.
  prometheus::Counter& exported;
  prometheus::Counter& queue_full;
  prometheus::Counter& refused;
  prometheus::Counter& stopped;
  prometheus::Counter& failed_calls;
};

class Exporter {
 public:
  // Spans of one message, and how long the first of them waits for more.
  static constexpr size_t kMostSpans = 512;
  static constexpr int64_t kLingerMs = 1'000;
  static constexpr int64_t kCallMs = 5'000;

  // target: as gRPC has it. queue and metrics outlive the exporter.
  Exporter(std::string target, std::shared_ptr<grpc::ChannelCredentials> credentials,
           ProcessName process, SpanQueue& queue, ExportMetrics& metrics);
  ~Exporter();  // as Stop(0)
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // Closes the queue and sends what is left of it, for at most so long; one try each.
  void Stop(int64_t timeout_ms);

 private:
  class Call;
  void Main();
  // Sends the message until the collector has answered for good, or the end has come.
  void Deliver(const otlp::v1::ExportRequest& message, size_t spans);
  // False: it is over, Stop was called.
  bool Pause(int64_t ms);
  int64_t StopDeadlineUs() const;  // 0: it was not called
  void NoteFailure(const std::string& reason);
  void NoteSuccess();

  const std::string target_;
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const ProcessName process_;
  SpanQueue& queue_;
  ExportMetrics& metrics_;
  bool failing_ = false;  // the thread's own

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  int64_t stop_deadline_us_ = 0;
  std::shared_ptr<Call> call_;  // while one runs
  const std::unique_ptr<struct CollectorStub> stub_;
  std::thread thread_;
};

}  // namespace tollgate::tracing
