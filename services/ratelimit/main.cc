// tollgate-ratelimit: request, token and concurrency limits as a separate process.
#include "common/host/host.h"
#include "services/ratelimit/ratelimit_module.h"

int main(int argc, char** argv) {
  return tollgate::host::Main<tollgate::config::v1::RateLimitConfig>(
      argc, argv, "ratelimit", [](tollgate::HostContext& context, const auto& config) {
        tollgate::host::Modules modules;
        modules.push_back(tollgate::MakeRateLimitModule(context, config.ratelimit()));
        return modules;
      });
}
