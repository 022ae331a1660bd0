#include "common/host/host.h"
#include "services/inference_router/inference_router_module.h"

int main(int argc, char** argv) {
  return tollgate::host::Main<tollgate::config::v1::RouterConfig>(
      argc, argv, "inference-router", [](tollgate::HostContext& context, const auto& config) {
        tollgate::host::Modules modules;
        modules.push_back(tollgate::MakeInferenceRouterModule(context, config.router()));
        return modules;
      });
}
