// tollgate-auth: workspaces, virtual keys, the audit log and people as a separate process. With a
// command, a tool that works on its database.
#include "common/base/core_dumps.h"
#include "common/host/host.h"
#include "services/auth/auth_module.h"
#include "services/auth/command/auth_command.h"
#include "services/people/people_module.h"

int main(int argc, char** argv) {
  tollgate::DenyCoreDumps();  // the commands need it, too
  if (const auto code = tollgate::auth::RunAuthCommand(argc, argv)) return *code;
  return tollgate::host::Main<tollgate::config::v1::AuthConfig>(
      argc, argv, "auth", [](tollgate::HostContext& context, const auto& config) {
        tollgate::host::Modules modules;
        modules.push_back(tollgate::MakeAuthModule(context, config.auth(), &config.targets()));
        modules.push_back(tollgate::MakePeopleModule(context, config.auth()));
        return modules;
      });
}
