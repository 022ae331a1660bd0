// tollgate-gateway: the gateway as a separate process.
#include "gateway/gateway_module.h"

int main(int argc, char** argv) {
  return tollgate::host::Main<tollgate::config::v1::GatewayConfig>(
      argc, argv, "gateway", [](tollgate::HostContext& context, const auto& config) {
        tollgate::host::Modules modules;
        modules.push_back(tollgate::MakeGatewayModule(context, config.gateway()));
        return modules;
      });
}
