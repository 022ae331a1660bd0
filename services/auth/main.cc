// tollgate-auth: workspaces, virtual keys and the audit log as a process of its own.
#include "common/host/host.h"
#include "services/auth/auth_module.h"

int main(int argc, char** argv) {
  return tollgate::host::Main<tollgate::config::v1::AuthConfig>(
      argc, argv, "auth", [](tollgate::HostContext& context, const auto& config) {
        tollgate::host::Modules modules;
        modules.push_back(tollgate::MakeAuthModule(context, config.auth()));
        return modules;
      });
}
