// tollgate-allinone: every module in one process, over in-process gRPC channels.
#include "common/host/host.h"
#include "gateway/gateway_module.h"
#include "services/auth/auth_module.h"
#include "services/billing/billing_module.h"
#include "services/catalog/catalog_module.h"
#include "services/dashboard/dashboard_module.h"
#include "services/inference_router/inference_router_module.h"
#include "services/ratelimit/ratelimit_module.h"

int main(int argc, char** argv) {
  return tollgate::host::Main<tollgate::config::v1::AllInOneConfig>(
      argc, argv, "allinone", [](tollgate::HostContext& context, const auto& config) {
        tollgate::host::Modules
            modules;  // in order of dependence: what comes later calls what comes earlier
        modules.push_back(tollgate::MakeCatalogModule(context, config.catalog()));
        modules.push_back(tollgate::MakeAuthModule(context, config.auth()));
        modules.push_back(tollgate::MakeRateLimitModule(context, config.ratelimit()));
        auto billing = config.billing();
        billing.set_holds_before_disk(
            true);  // router and ledger share one fate here (docs/adr/0005)
        modules.push_back(tollgate::MakeBillingModule(context, billing));
        modules.push_back(tollgate::MakeInferenceRouterModule(context, config.router()));
        modules.push_back(tollgate::MakeGatewayModule(context, config.gateway()));
        modules.push_back(tollgate::MakeDashboardModule(context, config.dashboard()));
        return modules;
      });
}
