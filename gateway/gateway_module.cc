#include "gateway/gateway_module.h"

#include "common/http/tls.h"
#include "common/observability/log.h"
#include "gateway/edge/edge.h"
#include "gateway/endpoints.h"
#include "gateway/envelopes/envelope.h"
#include "gateway/worker/worker_pool.h"

namespace tollgate {

namespace {

using config::v1::GatewaySettings;

gateway::PipelineOptions ReadPipelineOptions(const GatewaySettings& settings) {
  gateway::PipelineOptions options;
  if (!settings.brand().empty()) options.brand = settings.brand();
  options.legacy_key_prefixes = {settings.legacy_key_prefixes().begin(),
                                 settings.legacy_key_prefixes().end()};
  options.refuse_large_max_tokens = settings.refuse_large_max_tokens();
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
  if (settings.max_connections() > 0) options.server.max_connections = settings.max_connections();
  options.cors_origins = {settings.cors_origins().begin(), settings.cors_origins().end()};
  return options;
}

class GatewayModule : public Module {
 public:
  GatewayModule(HostContext& host, const GatewaySettings& settings)
      : host_(host),
        listen_(settings.listen().empty() ? "127.0.0.1:8080" : settings.listen()),
        edge_options_(ReadEdgeOptions(settings)),
        tls_(settings.edge_tls()),
        trusted_proxies_(settings.trusted_proxies().begin(), settings.trusted_proxies().end()),
        workers_(host, ReadPipelineOptions(settings), settings.catalog_cache_file()) {
    // Other processes never see a whole key.
    log::SetLegacyKeyPrefixes(
        {settings.legacy_key_prefixes().begin(), settings.legacy_key_prefixes().end()});
  }

  std::string_view name() const override { return "gateway"; }

  Result<void> Start() override {
    if (auto read = ReadSecurity(); !read) return read;
    workers_.Start();
    edge_ = std::make_unique<gateway::Edge>(
        host_.loops, edge_options_, gateway::MakeEndpoints([this](Loop& loop) -> gateway::Worker& {
          return workers_.ForLoop(loop);
        }),
        gateway::RenderError);
    if (auto listening = edge_->Listen(listen_); !listening) return listening;
    host_.report_address("http", edge_->address());
    return {};
  }

  bool Ready() const override { return workers_.Ready(); }

  void Drain(int64_t deadline_us) override {
    if (edge_) edge_->Drain(deadline_us);
  }

  // The edge stops first: its handlers use the workers.
  void Stop() override {
    if (edge_) edge_->Stop();
    edge_.reset();
    workers_.Stop();
  }

 private:
  Result<void> ReadSecurity() {
    auto proxies = http::TrustedProxies::Parse(trusted_proxies_);
    if (!proxies.ok()) return Internal("gateway." + proxies.error().internal);
    edge_options_.server.trusted_proxies = std::move(*proxies);
    std::vector<http::CertificateFiles> files;
    if (!tls_.certificate_file().empty() || !tls_.private_key_file().empty()) {
      files.push_back({tls_.certificate_file(), tls_.private_key_file()});
    } else if (tls_.further_certificates().empty()) {
      return {};
    }
    for (const auto& further : tls_.further_certificates()) {
      files.push_back({further.certificate_file(), further.private_key_file()});
    }
    auto tls = http::TlsServerContext::Load(std::move(files));
    if (!tls.ok()) return Internal("gateway.edge_tls: " + tls.error().internal);
    edge_options_.server.tls = std::move(*tls);
    return {};
  }

  HostContext& host_;
  const std::string listen_;
  gateway::EdgeOptions edge_options_;
  const config::v1::EdgeTls tls_;
  const std::vector<std::string> trusted_proxies_;
  gateway::WorkerPool workers_;
  std::unique_ptr<gateway::Edge> edge_;
};

}  // namespace

std::unique_ptr<Module> MakeGatewayModule(HostContext& host, const GatewaySettings& settings) {
  return std::make_unique<GatewayModule>(host, settings);
}

}  // namespace tollgate
