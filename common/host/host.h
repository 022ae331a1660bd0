// The process around modules: configuration, logs, event loops, gRPC server, admin listener,
// signals, start and drain. Every main.cc is one call of host::Main:
//
//   int main(int argc, char** argv) {
//     return tollgate::host::Main<tollgate::config::v1::BillingConfig>(
//         argc, argv, "billing", [](tollgate::HostContext& context, const auto& config) {
//           tollgate::host::Modules modules;
//           modules.push_back(tollgate::MakeBillingModule(context, config.billing()));
//           return modules;
//         });
//   }
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/clients/direct.h"
#include "common/clients/factory.h"
#include "common/host/module.h"
#include "common/runtime/loop.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate {

// What a module gets from its process. Outlives the modules.
struct HostContext {
  LoopPool& loops;
  Clock& clock;
  // Usable from Start on.
  ClientFactory& clients;
  // Where a module offers its neighbours in this process what they need on each request.
  DirectServices& direct;
  // A module that listens by itself reports where, for the address file and the log: ("http",
  // "127.0.0.1:8080"). Thread-safe.
  std::function<void(std::string_view name, std::string_view address)> report_address;
};

namespace host {

using Modules = std::vector<std::unique_ptr<Module>>;

// What Main does with a configuration that is read: runs until SIGTERM or SIGINT, returns the
// process's exit code. Modules start in order and stop in reverse.
int Run(std::string_view process_name, const config::v1::HostConfig& host,
        const config::v1::TargetsConfig& targets,
        const std::function<Modules(HostContext&)>& make_modules);

// Reads --config FILE into config (exit code 2 and a message with file and line when it is wrong);
// handles --check-config, --version and --help. Returns false when the process should end with
// *exit_code.
bool ReadArguments(int argc, char** argv, std::string_view process_name,
                   google::protobuf::Message& config, int* exit_code);

template <typename Config, typename MakeModules>
int Main(int argc, char** argv, std::string_view process_name, MakeModules make_modules) {
  Config config;
  int exit_code = 0;
  if (!ReadArguments(argc, argv, process_name, config, &exit_code)) return exit_code;
  config::v1::TargetsConfig targets;
  if constexpr (requires { config.targets(); }) targets = config.targets();
  return Run(process_name, config.host(), targets,
             [&](HostContext& context) { return make_modules(context, config); });
}

}  // namespace host
}  // namespace tollgate
