// tollgate-dashboard: the admin API and its pages as a separate process.
#include "common/host/host.h"
#include "services/dashboard/dashboard_module.h"

int main(int argc, char** argv) {
  return tollgate::host::Main<tollgate::config::v1::DashboardConfig>(
      argc, argv, "dashboard", [](tollgate::HostContext& context, const auto& config) {
        tollgate::host::Modules modules;
        modules.push_back(
            tollgate::MakeDashboardModule(context, config.dashboard(), &config.targets()));
        return modules;
      });
}
