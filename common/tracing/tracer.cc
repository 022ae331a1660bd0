#include "common/tracing/tracer.h"

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

#include "common/base/clock.h"
#include "common/base/mix.h"
#include "common/base/try.h"
#include "common/config/substitute.h"
#include "common/observability/metrics.h"
#include "common/tracing/exporter.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::tracing {
namespace {

constexpr double kDefaultRatio = 0.01;
constexpr int64_t kDefaultQueueBytes = 4 << 20;
constexpr int64_t kLeastQueueBytes = 64 << 10;
constexpr int64_t kWindowUs = 1'000'000;
constexpr std::string_view kHttps = "https://";

// Allows this many events in each second.
class PerSecond {
 public:
  bool Take(int64_t now_us) {
    std::lock_guard lock(mutex_);
    if (now_us - begin_us_ >= kWindowUs) {
      begin_us_ = now_us;
      taken_ = 0;
    }
    return ++taken_ <= kTracedFailuresPerSecond;
  }

 private:
  std::mutex mutex_;
  int64_t begin_us_ = -kWindowUs;
  int64_t taken_ = 0;
};

struct Tracer {
  Tracer(double sample_ratio, bool trusts_clients, size_t queue_bytes)
      : ratio(sample_ratio), trust_client(trusts_clients), queue(queue_bytes) {}

  const double ratio;
  const bool trust_client;
  const uint64_t secret = uint64_t{std::random_device()()} << 32 | std::random_device()();
  ExportMetrics metrics;
  prometheus::Counter& limited = metrics::Counter("tollgate_tracing_failures_limited_total",
                                                  "Failed requests that the head had not sampled "
                                                  "and that were not exported because there were "
                                                  "too many in that second.");
  PerSecond refused, broken;
  SpanQueue queue;
  std::unique_ptr<Exporter> exporter;
};

// Never deleted: other threads may record while the process ends.
std::atomic<Tracer*> g_tracer{nullptr};

Tracer* Get() { return g_tracer.load(std::memory_order_acquire); }

// How often certificates are reloaded.
constexpr unsigned kReloadSeconds = 10;

Result<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(
    const config::v1::TracingConfig& config, bool tls) {
  const std::string& authority = config.authority_file();
  const std::string& certificate = config.certificate_file();
  const std::string& key = config.private_key_file();
  if (!tls && !(authority + certificate + key).empty()) {
    return Internal("host.tracing: its files are for an otlp_endpoint with https://");
  }
  if (certificate.empty() != key.empty() || (authority.empty() && !certificate.empty())) {
    return Internal(
        "host.tracing: certificate_file needs private_key_file and authority_file, and the other "
        "way round");
  }
  for (const std::string* path : {&authority, &certificate, &key}) {
    if (!path->empty() && !config::ReadWholeFile(*path).ok()) {
      return Internal("host.tracing: cannot read " + *path);
    }
  }
  if (!tls) return grpc::InsecureChannelCredentials();
  if (authority.empty()) return grpc::SslCredentials({});
  namespace tls_api = grpc::experimental;
  tls_api::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      certificate.empty()
          ? std::make_shared<tls_api::FileWatcherCertificateProvider>(authority, kReloadSeconds)
          : std::make_shared<tls_api::FileWatcherCertificateProvider>(key, certificate, authority,
                                                                      kReloadSeconds));
  options.watch_root_certs();
  if (!certificate.empty()) options.watch_identity_key_cert_pairs();
  options.set_verify_server_certs(true);
  options.set_certificate_verifier(std::make_shared<tls_api::HostNameCertificateVerifier>());
  return tls_api::TlsCredentials(options);
}

}  // namespace

Result<void> Start(const config::v1::TracingConfig& config, ProcessName process) {
  g_tracer.store(nullptr, std::memory_order_release);
  if (config.otlp_endpoint().empty()) return {};
  const double ratio = config.has_sample_ratio() ? config.sample_ratio() : kDefaultRatio;
  if (!(ratio >= 0 && ratio <= 1)) {
    return Internal("host.tracing.sample_ratio must be from 0 to 1");
  }
  const int64_t queue_bytes = config.queue_bytes() > 0 ? config.queue_bytes() : kDefaultQueueBytes;
  if (queue_bytes < kLeastQueueBytes) {
    return Internal("host.tracing.queue_bytes must be at least 64 KiB");
  }
  std::string target = config.otlp_endpoint();
  const bool tls = target.starts_with(kHttps);
  if (tls) target.erase(0, kHttps.size());
  if (target.find("://") != std::string::npos || target.find(':') == std::string::npos) {
    return Internal("host.tracing.otlp_endpoint: \"" + config.otlp_endpoint() +
                    "\" is neither host:port nor https://host:port");
  }
  TRY(auto credentials, CredentialsOf(config, tls));
  auto* tracer =
      new Tracer(ratio, config.trust_client_sampling(), static_cast<size_t>(queue_bytes));
  tracer->exporter = std::make_unique<Exporter>(std::move(target), std::move(credentials),
                                                std::move(process), tracer->queue, tracer->metrics);
  g_tracer.store(tracer, std::memory_order_release);
  return {};
}

void Stop(int64_t timeout_ms) {
  if (Tracer* tracer = g_tracer.exchange(nullptr)) tracer->exporter->Stop(timeout_ms);
}

bool Enabled() { return Get() != nullptr; }

bool IsSampledByHead(const TraceId& id, std::optional<bool> client_flag) {
  const Tracer* tracer = Get();
  if (tracer == nullptr) return false;
  if (tracer->trust_client && client_flag) return *client_flag;
  uint64_t high = 0, low = 0;
  std::memcpy(&high, id.data(), sizeof high);
  std::memcpy(&low, id.data() + sizeof high, sizeof low);
  const uint64_t hash = MixBits(MixBits(low ^ tracer->secret) + high);
  // 53 bits, the precision of a double.
  return std::ldexp(static_cast<double>(hash >> 11), -53) < tracer->ratio;
}

bool IsExported(const TraceContext& context, Failure failure) {
  Tracer* tracer = Get();
  if (tracer == nullptr) return false;
  if (context.sampled) return true;
  if (failure == Failure::kNone) return false;
  PerSecond& limit = failure == Failure::kBroken ? tracer->broken : tracer->refused;
  const bool exported = limit.Take(SystemClock::Get().MonotonicUs());
  if (!exported) tracer->limited.Increment();
  return exported;
}

void Record(std::vector<Span> spans) {
  Tracer* tracer = Get();
  if (tracer == nullptr || spans.empty()) return;
  // The same offset for all spans, so that they nest even if the clocks change.
  const int64_t to_unix_us = SystemClock::Get().WallUs() - SystemClock::Get().MonotonicUs();
  for (Span& span : spans) {
    span.start_us += to_unix_us;
    span.end_us += to_unix_us;
    for (SpanEvent& event : span.events) event.at_us += to_unix_us;
  }
  const size_t count = spans.size();
  if (!tracer->queue.Put(std::move(spans))) {
    tracer->metrics.queue_full.Increment(static_cast<double>(count));
  }
}

}  // namespace tollgate::tracing
