// tollgate-allinone: all eight modules in one process. Calls on a request's path are plain function
// calls; all others use in-process gRPC (docs/adr/0006).
#include <algorithm>

#include "common/host/host.h"
#include "common/rpc/link_protocol.h"
#include "gateway/gateway_module.h"
#include "services/auth/auth_module.h"
#include "services/billing/billing_module.h"
#include "services/catalog/catalog_module.h"
#include "services/dashboard/dashboard_module.h"
#include "services/inference_router/inference_router_module.h"
#include "services/people/people_module.h"
#include "services/ratelimit/ratelimit_module.h"

namespace {

// The URL at which this process reaches its own gateway. "" if the port is chosen at the start, or
// with TLS, because the certificate is for another name.
std::string OwnGateway(const tollgate::config::v1::GatewaySettings& gateway) {
  if (gateway.has_edge_tls()) return "";
  const std::string listen = gateway.listen().empty() ? "127.0.0.1:8080" : gateway.listen();
  if (listen.ends_with(":0")) return "";
  return "http://" + (listen.starts_with("0.0.0.0:") ? "127.0.0.1" + listen.substr(7) : listen);
}

}  // namespace

int main(int argc, char** argv) {
  return tollgate::host::Main<tollgate::config::v1::AllInOneConfig>(
      argc, argv, "allinone", [](tollgate::HostContext& context, const auto& config) {
        // The router and the ledger fail together here (docs/adr/0005).
        auto billing = config.billing();
        billing.set_holds_before_disk(true);
        // gateway.max_body_bytes alone is enough to allow larger bodies; the extra room is for what
        // translation adds.
        auto router = config.router();
        if (router.max_body_bytes() == 0) {
          router.set_max_body_bytes(
              std::max(tollgate::kDefaultRouterBodyBytes, 2 * config.gateway().max_body_bytes()));
        }
        auto dashboard = config.dashboard();
        if (dashboard.gateway_url().empty() && dashboard.base_url().empty()) {
          dashboard.set_gateway_url(OwnGateway(config.gateway()));
        }
        // In order of dependency: each module calls only modules before it.
        tollgate::host::Modules modules;
        modules.push_back(tollgate::MakeCatalogModule(context, config.catalog()));
        modules.push_back(tollgate::MakeAuthModule(context, config.auth()));
        modules.push_back(tollgate::MakePeopleModule(context, config.auth()));
        modules.push_back(tollgate::MakeRateLimitModule(context, config.ratelimit()));
        modules.push_back(tollgate::MakeBillingModule(context, billing));
        modules.push_back(tollgate::MakeInferenceRouterModule(context, router));
        modules.push_back(tollgate::MakeGatewayModule(context, config.gateway()));
        modules.push_back(tollgate::MakeDashboardModule(context, dashboard));
        return modules;
      });
}
