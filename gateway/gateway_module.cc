#include "gateway/gateway_module.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "common/base/seal.h"
#include "common/base/try.h"
#include "common/host/descriptors.h"
#include "common/host/edge_tls.h"
#include "common/host/memory_limit.h"
#include "common/host/plain_text.h"
#include "common/http/server_metrics.h"
#include "common/keys/key_format.h"
#include "common/observability/log.h"
#include "gateway/edge/edge.h"
#include "gateway/endpoints.h"
#include "gateway/envelopes/envelope.h"
#include "gateway/pipeline/admission/await_ledger.h"
#include "gateway/pipeline/checks/media_hosts.h"
#include "gateway/pipeline/judge_head.h"
#include "gateway/worker/worker_pool.h"

namespace tollgate {

namespace {

using config::v1::GatewaySettings;

constexpr int kMemoryPercent = 50;
constexpr int64_t kLeastMemoryBytes = 1 << 20;

gateway::PipelineOptions ReadPipelineOptions(const GatewaySettings& settings) {
  gateway::PipelineOptions options;
  if (!settings.brand().empty()) options.brand = settings.brand();
  options.legacy_key_prefixes = {settings.legacy_key_prefixes().begin(),
                                 settings.legacy_key_prefixes().end()};
  options.refuse_large_max_tokens = settings.refuse_large_max_tokens();
  if (settings.max_body_bytes() > 0) {
    options.max_body_bytes = static_cast<size_t>(settings.max_body_bytes());
  }
  for (const std::string& host : settings.media_hosts()) {
    options.media_hosts.push_back(gateway::ReadMediaHostRule(host).value_or(""));
  }
  options.debug_keys = {settings.debug_keys().begin(), settings.debug_keys().end()};
  if (!settings.idempotency_key_file().empty()) {
    const auto keys = ReadSealKeys(settings.idempotency_key_file());
    if (keys.size() == 1) options.answer_key = keys.front();
  }
  if (auto keys = ReadSealKeys(settings.reasoning_key_file()); !keys.empty()) {
    gateway::ReasoningKeys reasoning{std::move(keys)};
    if (settings.reasoning_hours() > 0) {
      reasoning.lifetime_s = int64_t{settings.reasoning_hours()} * 3600;
    }
    options.reasoning_keys = std::make_shared<gateway::ReasoningKeys>(std::move(reasoning));
  }
  if (settings.keep_alive_seconds() > 0) {
    options.keep_alive_ms = int64_t{settings.keep_alive_seconds()} * 1000;
  }
  return options;
}

gateway::EdgeOptions ReadEdgeOptions(const GatewaySettings& settings) {
  gateway::EdgeOptions options;
  if (settings.max_body_bytes() > 0) {
    options.server.max_body_bytes = static_cast<size_t>(settings.max_body_bytes());
  }
  if (settings.max_head_bytes() > 0) {
    options.server.max_head_bytes = static_cast<size_t>(settings.max_head_bytes());
  }
  if (settings.min_body_bytes_per_second() > 0) {
    options.server.min_body_bytes_per_second = settings.min_body_bytes_per_second();
  }
  if (settings.max_body_seconds() > 0) {
    options.server.max_body_ms = int64_t{settings.max_body_seconds()} * 1000;
  }
  if (settings.max_connections() > 0) options.server.max_connections = settings.max_connections();
  options.cors_origins = {settings.cors_origins().begin(), settings.cors_origins().end()};
  return options;
}

int64_t MemoryBudgetBytes(const GatewaySettings& settings) {
  if (settings.memory_budget_bytes() > 0) return settings.memory_budget_bytes();
  const int percent =
      settings.memory_budget_percent() > 0 ? settings.memory_budget_percent() : kMemoryPercent;
  return host::AvailableMemoryBytes() / 100 * percent;
}

class GatewayModule : public Module {
 public:
  GatewayModule(HostContext& host, const GatewaySettings& settings, int64_t ready_wait_ms)
      : host_(host),
        ready_wait_ms_(ready_wait_ms),
        listen_(settings.listen().empty() ? "127.0.0.1:8080" : settings.listen()),
        edge_options_(ReadEdgeOptions(settings)),
        address_percent_(settings.address_connection_percent()),
        memory_percent_(settings.memory_budget_percent()),
        memory_budget_bytes_(MemoryBudgetBytes(settings)),
        tls_(settings.edge_tls()),
        insecure_plaintext_(settings.insecure_plaintext()),
        trusted_proxies_(settings.trusted_proxies().begin(), settings.trusted_proxies().end()),
        media_hosts_(settings.media_hosts().begin(), settings.media_hosts().end()),
        debug_keys_(settings.debug_keys().begin(), settings.debug_keys().end()),
        idempotency_key_file_(settings.idempotency_key_file()),
        drain_notice_seconds_(settings.drain_notice_seconds()),
        reasoning_key_file_(settings.reasoning_key_file()),
        workers_(host, ReadPipelineOptions(settings), settings.catalog_cache_file()) {
    // Other processes never see a whole key.
    log::SetLegacyKeyPrefixes(
        {settings.legacy_key_prefixes().begin(), settings.legacy_key_prefixes().end()});
  }

  std::string_view name() const override { return "gateway"; }

  Result<void> Start() override {
    if (memory_percent_ < 0 || memory_percent_ > 100) {
      return Internal("gateway.memory_budget_percent must be from 1 to 100");
    }
    if (memory_budget_bytes_ < kLeastMemoryBytes) {
      return Internal("gateway.memory_budget_bytes must be at least 1 MiB");
    }
    if (address_percent_ < 0 || address_percent_ > 100) {
      return Internal("gateway.address_connection_percent must be from 1 to 100");
    }
    TRY(PlanConnections());
    TRY(ReadSecurity());
    gateway::LedgerWaiters::Get();  // registers the metrics at the start
    workers_.Start();
    edge_options_.server.memory = std::make_shared<MemoryBudget>(memory_budget_bytes_);
    edge_options_.server.metrics = std::make_shared<http::ServerMetrics>();
    edge_options_.judge_head = [this](const gateway::Endpoint& endpoint, http::HttpRequest& request,
                                      Loop& loop) {
      return gateway::JudgeHead(workers_.ForLoop(loop), endpoint, request);
    };
    edge_ = std::make_unique<gateway::Edge>(
        host_.loops, edge_options_,
        gateway::MakeEndpoints(
            [this](Loop& loop) -> gateway::Worker& { return workers_.ForLoop(loop); },
            [this] { return accepting_.load(); }),
        gateway::RenderError);
    // A load balancer that checks only the connection sends requests to every gateway that accepts
    // one. So connections are refused until there is a catalog, and such requests go to another
    // gateway. Without auth or catalog, this gateway starts after ready_wait_ms and serves what it
    // can.
    workers_.AwaitReady(ready_wait_ms_);
    TRY(edge_->Listen(listen_));
    host_.report_address("http", edge_->address());
    return {};
  }

  bool Ready() const override { return workers_.Ready(); }

  // Gives load balancers time to see /healthz change before connections are refused.
  void Drain(int64_t deadline_us) override {
    accepting_ = false;
    if (!edge_) return;
    const int64_t left_us = deadline_us - host_.clock.MonotonicUs();
    const int64_t notice_us = drain_notice_seconds_ * int64_t{1'000'000};
    // Leaves at least half of the time for the answers that are still running.
    std::this_thread::sleep_for(std::chrono::microseconds(
        std::clamp<int64_t>(notice_us, 0, std::max<int64_t>(left_us / 2, 0))));
    edge_->Drain(deadline_us);
  }

  // The edge stops first because its handlers use the workers.
  void Stop() override {
    if (edge_) edge_->Stop();
    edge_.reset();
    workers_.Stop();
  }

 private:
  Result<void> PlanConnections() {
    http::ServerOptions& server = edge_options_.server;
    TRY(const auto plan, host::PlanConnections(server.max_connections, host::DescriptorLimit()));
    server.max_connections = plan.max_connections;
    server.max_descriptor = plan.max_descriptor;
    if (address_percent_ > 0) {
      server.max_connections_per_address =
          std::max<int>(1, int{address_percent_} * int64_t{plan.max_connections} / 100);
    }
    return {};
  }
  Result<void> ReadSecurity() {
    for (const std::string& host : media_hosts_) {
      if (!gateway::ReadMediaHostRule(host)) {
        return Internal("gateway.media_hosts: \"" + host +
                        "\" is not a host, \"*.\" and a host, or \"*\", without scheme and port");
      }
    }
    for (const std::string& key : debug_keys_) {
      if (!IsKeyId(key)) {
        return Internal("gateway.debug_keys: the entry of " + std::to_string(key.size()) +
                        " characters is not the public id of a key: 12 letters and digits, as the "
                        "dashboard shows it, never the whole key");
      }
    }
    if (!idempotency_key_file_.empty() && ReadSealKeys(idempotency_key_file_).size() != 1) {
      return Internal("gateway.idempotency_key_file: " + idempotency_key_file_ +
                      " does not have 64 hexadecimal digits; make one with openssl rand -hex 32");
    }
    if (!reasoning_key_file_.empty() && ReadSealKeys(reasoning_key_file_).empty()) {
      return Internal("gateway.reasoning_key_file: " + reasoning_key_file_ +
                      " has no line, or a line that does not have 64 hexadecimal digits; make one "
                      "with openssl rand -hex 32");
    }
    auto proxies = http::TrustedProxies::Parse(trusted_proxies_);
    if (!proxies.ok()) return Internal("gateway." + proxies.error().internal);
    edge_options_.server.trusted_proxies = std::move(*proxies);
    TRY(auto tls, host::LoadEdgeTls(tls_, "gateway.edge_tls"));
    edge_options_.server.tls = std::move(tls);
    return host::CheckPlainHttp("gateway.listen", listen_, edge_options_.server.tls != nullptr,
                                insecure_plaintext_ || host_.insecure_plaintext,
                                "gateway.edge_tls, or, behind a load balancer that ends TLS, "
                                "gateway.insecure_plaintext: true");
  }

  HostContext& host_;
  const int64_t ready_wait_ms_;
  const std::string listen_;
  gateway::EdgeOptions edge_options_;
  const int address_percent_;  // 0: the default
  const int memory_percent_;
  const int64_t memory_budget_bytes_;
  const config::v1::EdgeTls tls_;
  const bool insecure_plaintext_;
  const std::vector<std::string> trusted_proxies_;
  const std::vector<std::string> media_hosts_;
  const std::vector<std::string> debug_keys_;
  const std::string idempotency_key_file_;
  const int32_t drain_notice_seconds_;
  std::atomic<bool> accepting_{true};
  const std::string reasoning_key_file_;
  gateway::WorkerPool workers_;
  std::unique_ptr<gateway::Edge> edge_;
};

}  // namespace

std::unique_ptr<Module> MakeGatewayModule(HostContext& host, const GatewaySettings& settings,
                                          int64_t ready_wait_ms) {
  return std::make_unique<GatewayModule>(host, settings, ready_wait_ms);
}

}  // namespace tollgate
