// tollgate-billing: the ledger as its own process.
#include "common/host/host.h"
#include "services/billing/billing_module.h"

int main(int argc, char** argv) {
  return tollgate::host::Main<tollgate::config::v1::BillingConfig>(
      argc, argv, "billing", [](tollgate::HostContext& context, const auto& config) {
        tollgate::host::Modules modules;
        modules.push_back(tollgate::MakeBillingModule(context, config.billing()));
        return modules;
      });
}
