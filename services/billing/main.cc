// tollgate-billing: the ledger as a separate process. With a command, a tool that works on its
// database.
#include "common/base/core_dumps.h"
#include "common/host/host.h"
#include "services/billing/billing_module.h"
#include "services/billing/command/all_schemas.h"
#include "services/billing/command/ledger_command.h"

int main(int argc, char** argv) {
  tollgate::DenyCoreDumps();  // for the commands, too
  if (const auto code =
          tollgate::billing::RunLedgerCommand(argc, argv, tollgate::billing::AllSchemas())) {
    return *code;
  }
  return tollgate::host::Main<tollgate::config::v1::BillingConfig>(
      argc, argv, "billing", [](tollgate::HostContext& context, const auto& config) {
        tollgate::host::Modules modules;
        modules.push_back(tollgate::MakeBillingModule(context, config.billing()));
        return modules;
      });
}
