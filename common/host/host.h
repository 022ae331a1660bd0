// The process that runs modules: configuration, logs, event loops, gRPC server, admin listener,
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
#include "common/base/core_dumps.h"
#include "common/clients/direct.h"
#include "common/clients/factory.h"
#include "common/host/module.h"
#include "common/runtime/loop.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate {

// What the process provides to its modules. Outlives them.
struct HostContext {
  LoopPool& loops;
  Clock& clock;
  // May be used after Module::Start begins.
  ClientFactory& clients;
  // Functions of modules in this process; used instead of gRPC for calls per request.
  DirectServices& direct;
  // Called by a module that has a listener of its own: reports an address such as ("http",
  // "127.0.0.1:8080") for the address file. Thread-safe.
  std::function<void(std::string_view name, std::string_view address)> report_address;
  // host.insecure_plaintext: addresses need no TLS.
  bool insecure_plaintext = false;
};

namespace host {

using Modules = std::vector<std::unique_ptr<Module>>;

// Runs the process until SIGTERM or SIGINT and returns its exit code. Modules start in order and
// stop in reverse order.
int Run(std::string_view process_name, const config::v1::HostConfig& host,
        const config::v1::TargetsConfig& targets,
        const std::function<Modules(HostContext&)>& make_modules);

// Reads --config FILE into config and handles --check-config, --version and --help. Returns false
// if the process should exit with *exit_code, which is 2 for an invalid configuration or command
// line.
bool ReadArguments(int argc, char** argv, std::string_view process_name,
                   google::protobuf::Message& config, int* exit_code);

template <typename Config, typename MakeModules>
int Main(int argc, char** argv, std::string_view process_name, MakeModules make_modules) {
  DenyCoreDumps();  // before the first secret is read
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
