#include "common/tracing/exporter.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "common/base/clock.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"

namespace tollgate::tracing {

using otlp::v1::ExportRequest;
using otlp::v1::ExportResponse;

// The service has OpenTelemetry's name; only the names of its messages are ours (trace.proto).
struct CollectorStub {
  grpc::TemplatedGenericStub<ExportRequest, ExportResponse> stub;
};

namespace {

constexpr char kMethod[] = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
constexpr int64_t kFirstPauseMs = 250, kLongestPauseMs = 10'000;

// The retryable codes of OTLP.
bool MayRetry(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::OUT_OF_RANGE:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DATA_LOSS:
      return true;
    default:
      return false;
  }
}

std::unique_ptr<CollectorStub> MakeStub(
    const std::string& target, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 250);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5'000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return std::unique_ptr<CollectorStub>(new CollectorStub{
      decltype(CollectorStub::stub)(grpc::CreateCustomChannel(target, credentials, arguments))});
}

prometheus::Counter& Spans(const char* result) {
  return metrics::Counter("tollgate_tracing_spans_total",
                          "Spans of traced requests: exported; dropped because the queue was full "
                          "(queue_full), the collector refused them (refused) or the process "
                          "ended before the collector took them (stopped).",
                          {{"result", result}});
}

}  // namespace

ExportMetrics::ExportMetrics()
    : exported(Spans("exported")),
      queue_full(Spans("queue_full")),
      refused(Spans("refused")),
      stopped(Spans("stopped")),
      failed_calls(metrics::Counter("tollgate_tracing_failed_calls_total",
                                    "Calls of the collector that failed. Their spans are sent "
                                    "again, unless the collector refused them.")) {}

// One call. It shares only its result with gRPC's thread: that thread must not destroy the context,
// which holds the channel (docs/design/toolchain.md 2).
class Exporter::Call {
 public:
  grpc::Status Run(CollectorStub& stub, const ExportRequest& message, int64_t timeout_ms) {
    const auto timeout = std::chrono::milliseconds(timeout_ms);
    context_.set_deadline(std::chrono::system_clock::now() + timeout);
    stub.stub.UnaryCall(&context_, kMethod, {}, &message, &response_,
                        [end = end_](grpc::Status status) {
                          std::lock_guard lock(end->mutex);
                          end->status.emplace(std::move(status));
                          end->changed.notify_all();
                        });
    std::unique_lock lock(end_->mutex);
    end_->changed.wait(lock, [this] { return end_->status.has_value(); });
    return *end_->status;
  }
  // Cancels the call if it has not ended after this time. Callable on any thread.
  void EndWithin(int64_t ms) {
    std::unique_lock lock(end_->mutex);
    const bool ended = end_->changed.wait_for(lock, std::chrono::milliseconds(ms),
                                              [this] { return end_->status.has_value(); });
    lock.unlock();
    if (!ended) context_.TryCancel();
  }
  const ExportResponse& response() const { return response_; }

 private:
  struct End {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<grpc::Status> status;
  };
  const std::shared_ptr<End> end_ = std::make_shared<End>();
  grpc::ClientContext context_;
  ExportResponse response_;
};

Exporter::Exporter(std::string target, std::shared_ptr<grpc::ChannelCredentials> credentials,
                   ProcessName process, SpanQueue& queue, ExportMetrics& metrics)
    : target_(std::move(target)),
      credentials_(std::move(credentials)),
      process_(std::move(process)),
      queue_(queue),
      metrics_(metrics),
      stub_(MakeStub(target_, credentials_)),
      thread_([this] { Main(); }) {}

Exporter::~Exporter() { Stop(0); }

void Exporter::Stop(int64_t timeout_ms) {
  std::shared_ptr<Call> running;
  {
    std::lock_guard lock(mutex_);
    if (stop_deadline_us_ == 0) stop_deadline_us_ = MonotonicNowUs() + timeout_ms * 1000;
    running = call_;
  }
  wake_.notify_all();
  queue_.Close();
  if (running) running->EndWithin(timeout_ms);
  if (thread_.joinable()) thread_.join();
}

int64_t Exporter::StopDeadlineUs() const {
  std::lock_guard lock(mutex_);
  return stop_deadline_us_;
}

bool Exporter::Pause(int64_t ms) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::milliseconds(ms),
                         [this] { return stop_deadline_us_ != 0; });
}

void Exporter::Main() {
  pthread_setname_np(pthread_self(), "tracing");
  for (;;) {
    const std::vector<Span> spans = queue_.Take(kMostSpans, kLingerMs);
    if (spans.empty()) return;  // closed
    const int64_t deadline_us = StopDeadlineUs();
    const bool give_up = deadline_us != 0 && (failing_ || MonotonicNowUs() >= deadline_us);
    if (give_up) {
      metrics_.stopped.Increment(static_cast<double>(spans.size()));
    } else {
      Deliver(ToOtlp(process_, spans), spans.size());
    }
    queue_.Forget();
  }
}

void Exporter::Deliver(const ExportRequest& message, size_t spans) {
  for (int64_t pause_ms = kFirstPauseMs;; pause_ms = std::min(2 * pause_ms, kLongestPauseMs)) {
    const auto call = std::make_shared<Call>();
    int64_t left_ms = kCallMs;
    {
      std::lock_guard lock(mutex_);
      if (stop_deadline_us_ != 0) left_ms = (stop_deadline_us_ - MonotonicNowUs()) / 1000;
      call_ = call;
    }
    if (left_ms <= 0) return metrics_.stopped.Increment(static_cast<double>(spans));
    const grpc::Status status = call->Run(*stub_, message, std::min(left_ms, kCallMs));
    {
      std::lock_guard lock(mutex_);
      call_.reset();
    }
    if (status.ok()) {
      const int64_t rejected = std::clamp<int64_t>(
          call->response().partial_success().rejected_spans(), 0, static_cast<int64_t>(spans));
      metrics_.refused.Increment(static_cast<double>(rejected));
      metrics_.exported.Increment(static_cast<double>(spans) - static_cast<double>(rejected));
      return NoteSuccess();
    }
    metrics_.failed_calls.Increment();
    NoteFailure(status.error_message());
    if (!MayRetry(status.error_code())) {
      return metrics_.refused.Increment(static_cast<double>(spans));
    }
    // Half of the pause is random, so that processes do not retry together.
    const auto half_ms = static_cast<uint64_t>(pause_ms / 2);
    if (!Pause(static_cast<int64_t>(half_ms + NewSpanId() % half_ms))) {
      return metrics_.stopped.Increment(static_cast<double>(spans));
    }
  }
}

// Logs once when failures begin and once when they end, however many attempts there are.
void Exporter::NoteFailure(const std::string& reason) {
  if (std::exchange(failing_, true)) return;
  log::Warn("traces cannot be sent to the collector; requests are not affected",
            {{"collector", target_}, {"reason", reason}});
}

void Exporter::NoteSuccess() {
  if (!std::exchange(failing_, false)) return;
  log::Info("traces are sent to the collector again", {{"collector", target_}});
}

}  // namespace tollgate::tracing
