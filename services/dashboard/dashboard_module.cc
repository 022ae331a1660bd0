#include "services/dashboard/dashboard_module.h"

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "common/base/try.h"
#include "common/host/edge_tls.h"
#include "common/host/plain_text.h"
#include "common/http/server.h"
#include "common/observability/log.h"
#include "common/rpc/replicas.h"
#include "services/dashboard/front/services.h"
#include "services/dashboard/http/admin_api.h"
#include "services/dashboard/http/playground.h"
#include "services/dashboard/http/site.h"
#include "services/dashboard/session/cookies.h"
#include "services/dashboard/session/session_api.h"

namespace tollgate {
namespace {

constexpr std::string_view kDefaultListen = "127.0.0.1:8081";
constexpr size_t kMinTokenBytes = 16;
constexpr size_t kMaxBodyBytes = 1 << 20;
constexpr int kMaxConnections = 500;

class DashboardModule : public Module {
 public:
  DashboardModule(HostContext& context, const config::v1::DashboardSettings& settings,
                  const config::v1::TargetsConfig* targets)
      : context_(context),
        knows_routers_(targets == nullptr || targets->router_admin_size() > 0),
        lacks_targets_(targets != nullptr &&
                       (targets->auth_admin().empty() || targets->billing_admin().empty() ||
                        targets->catalog_admin().empty())),
        listen_(settings.listen().empty() ? kDefaultListen : settings.listen()),
        tls_(settings.edge_tls()),
        insecure_plaintext_(settings.insecure_plaintext()),
        token_(settings.login_token()),
        trusted_proxies_(settings.trusted_proxies().begin(), settings.trusted_proxies().end()),
        web_folder_(settings.web_folder()),
        session_options_{.public_url = settings.public_url(),
                         .base_url = settings.base_url(),
                         .web = !settings.web_folder().empty()},
        gateway_url_(settings.gateway_url().empty() ? settings.base_url() : settings.gateway_url()),
        login_(settings.login_token()),
        login_source_(login_) {
    front_services_.push_back(dashboard::MakeEngineService(peers_));
    front_services_.push_back(dashboard::MakeProcessService(peers_));
    front_services_.push_back(dashboard::MakeSummaryService(peers_));
  }
  ~DashboardModule() override { Stop(); }

  std::string_view name() const override { return "dashboard"; }
  void RegisterAdmin(grpc::ServerBuilder& builder) override {
    for (const auto& service : front_services_) builder.RegisterService(service.get());
  }

  Result<void> Start() override {
    if (lacks_targets_) {
      return Internal(
          "targets.auth_admin, targets.billing_admin and targets.catalog_admin are required: the "
          "host.admin_grpc_listen of these services");
    }
    if (!token_.empty() && token_.size() < kMinTokenBytes) {
      return Internal("dashboard.login_token must have at least 16 characters");
    }
    auto proxies = http::TrustedProxies::Parse(trusted_proxies_);
    if (!proxies.ok()) return Internal("dashboard." + proxies.error().internal);
    std::unique_ptr<const dashboard::WebFiles> web;
    if (!web_folder_.empty()) {
      TRY(auto loaded, dashboard::WebFiles::Load(web_folder_));
      web = std::move(loaded);
    }
    site_.emplace(session_options_.base_url, std::move(web));
    TRY(auto tls, host::LoadEdgeTls(tls_, "dashboard.edge_tls"));
    TRY(CheckPlain(tls != nullptr));
    if (token_.empty())
      log::Info(
          "dashboard.login_token is not set: the admin API takes people and their tokens only");
    clients_.resize(context_.loops.size());
    for (int i = 0; i < context_.loops.size(); ++i) {
      Loop& loop = context_.loops.loop(i);
      loop.RunAndWait([&] {
        for (const AdminTarget target : {AdminTarget::kAuth, AdminTarget::kBilling,
                                         AdminTarget::kCatalog, AdminTarget::kSelf}) {
          clients_[i][target] = context_.clients.AdminReplicas(target, loop);
        }
      });
    }
    OpenPeers();
    sessions_ = std::make_unique<dashboard::SessionClient>([this](Loop& loop) {
      return clients_[loop.index()][AdminTarget::kAuth]->Pick()->channel();
    });

    session_api_ = std::make_unique<dashboard::SessionApi>(*sessions_, session_options_);
    session_source_ =
        std::make_unique<dashboard::SessionSource>(*sessions_, session_options_, login_source_);
    auto admin_api = dashboard::AdminApi::Make(
        *session_source_,
        {.public_url = session_options_.public_url,
         .channel_to = [this](const google::protobuf::ServiceDescriptor& service, Loop& loop) {
           const auto target = dashboard::TargetOf(service);
           // Pick chooses another replica when one hangs or is unreachable.
           return target ? clients_[loop.index()][*target]->Pick()->channel() : nullptr;
         }});
    if (!admin_api.ok()) return Fail{admin_api.error()};
    admin_api_ = std::move(*admin_api);
    TRY(auto playground,
        dashboard::Playground::Make(context_.loops, {.gateway_url = gateway_url_,
                                                     .public_url = session_options_.public_url}));
    playground_ = std::move(playground);

    http::ServerOptions options;
    options.headers = http::SecurityHeaders(
        /*https=*/session_options_.public_url.starts_with("https://") || tls != nullptr);
    options.headers.emplace_back("cross-origin-resource-policy", "same-origin");
    options.max_body_bytes = kMaxBodyBytes;
    options.max_connections = kMaxConnections;
    options.tls = std::move(tls);
    options.trusted_proxies = std::move(*proxies);
    options.render_error = [this](const Error& error, const http::HttpRequest& request) {
      return IsAdminApi(request) ? admin_api_->RenderError(error)
                                 : dashboard::Site::RenderError(error);
    };
    server_ = std::make_unique<http::Server>(
        context_.loops, std::move(options),
        [this](http::Exchange& exchange) { return Serve(exchange); });
    TRY(server_->Listen(listen_));
    context_.report_address("dashboard", server_->address());
    const std::string risk = dashboard::CookieRisk(listen_, session_options_.public_url);
    if (!risk.empty()) log::Warn(risk, {{"listen", listen_}});
    ready_ = true;
    return {};
  }
  bool Ready() const override { return ready_; }
  void Drain(int64_t deadline_us) override {
    ready_ = false;
    if (server_) server_->Drain(deadline_us);
  }
  void Stop() override {
    ready_ = false;
    if (server_) server_->Stop();
    server_.reset();
    if (playground_) playground_->Stop();
    sessions_.reset();
    if (Loop* const loop = peers_.loop.exchange(nullptr)) {
      loop->RunAndWait([this] { peers_.peers.reset(); });
    }
    // Each client must be destroyed on its own loop.
    for (size_t i = 0; i < clients_.size(); ++i) {
      context_.loops.loop(static_cast<int>(i)).RunAndWait([&] { clients_[i] = {}; });
    }
    clients_.clear();
  }

 private:
  using LoopClients = std::map<AdminTarget, std::shared_ptr<rpc::Replicas>>;

  // Creates the clients for the services of this process, all on the first loop.
  void OpenPeers() {
    using Other = ClientFactory::OtherTarget;
    Loop& loop = context_.loops.loop(0);
    loop.RunAndWait([&] {
      LoopClients& clients = clients_[0];
      peers_.peers = std::make_shared<const dashboard::Peers>(dashboard::Peers{
          .loop = loop,
          .auth = clients[AdminTarget::kAuth],
          .billing = clients[AdminTarget::kBilling],
          .catalog = clients[AdminTarget::kCatalog],
          .self = clients[AdminTarget::kSelf],
          .routers =
              knows_routers_ ? context_.clients.AdminReplicas(AdminTarget::kRouter, loop) : nullptr,
          .ratelimits = context_.clients.OtherReplicas(Other::kRateLimit, loop),
          .gateways = context_.clients.OtherReplicas(Other::kGateway, loop)});
    });
    peers_.loop = &loop;
  }

  Result<void> CheckPlain(bool has_tls) const {
    return host::CheckPlainHttp("dashboard.listen", listen_, has_tls,
                                insecure_plaintext_ || context_.insecure_plaintext,
                                "dashboard.edge_tls, or, behind a proxy that ends TLS, "
                                "dashboard.insecure_plaintext: true");
  }
  static bool IsAdminApi(const http::HttpRequest& request) {
    return request.path.starts_with(dashboard::kAdminApiPath);
  }

  Task<void> Serve(http::Exchange& exchange) {
    if (exchange.request().path.starts_with(dashboard::kSessionPath)) {
      co_await exchange.Send(co_await session_api_->Handle(exchange.request(), exchange.loop()));
      co_return;
    }
    if (IsAdminApi(exchange.request())) {
      co_await admin_api_->Serve(exchange);
      co_return;
    }
    if (exchange.request().path.starts_with(dashboard::kPlaygroundPath)) {
      co_await playground_->Serve(exchange);
      co_return;
    }
    co_await exchange.Send(site_->Handle(exchange.request()));
  }

  HostContext& context_;
  const bool knows_routers_;
  const bool lacks_targets_;
  const std::string listen_;
  const config::v1::EdgeTls tls_;
  const bool insecure_plaintext_;
  const std::string token_;
  const std::vector<std::string> trusted_proxies_;
  const std::string web_folder_;
  const dashboard::SessionOptions session_options_;
  const std::string gateway_url_;
  std::optional<dashboard::Site> site_;
  dashboard::LoginToken login_;
  dashboard::LoginTokenSource login_source_;
  dashboard::PeersSlot peers_;
  std::vector<std::unique_ptr<grpc::Service>> front_services_;
  std::unique_ptr<dashboard::SessionClient> sessions_;
  std::unique_ptr<dashboard::SessionApi> session_api_;
  std::unique_ptr<dashboard::SessionSource> session_source_;
  std::unique_ptr<dashboard::AdminApi> admin_api_;
  std::unique_ptr<dashboard::Playground> playground_;
  std::vector<LoopClients> clients_;  // by loop index
  std::unique_ptr<http::Server> server_;
  std::atomic<bool> ready_{false};
};

}  // namespace

std::unique_ptr<Module> MakeDashboardModule(HostContext& context,
                                            const config::v1::DashboardSettings& settings,
                                            const config::v1::TargetsConfig* targets) {
  return std::make_unique<DashboardModule>(context, settings, targets);
}

}  // namespace tollgate
