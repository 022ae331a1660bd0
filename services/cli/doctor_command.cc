#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "services/cli/commands.h"
#include "services/cli/doctor/checks.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

struct DoctorArguments {
  std::vector<std::string> configs;
  std::string dashboard_target;
  bool engines = false;
  bool quiet = false;
};

DoctorOptions OptionsOf(const Options& options, const DoctorArguments& arguments) {
  DoctorOptions doctor;
  doctor.tls = options.tls;
  doctor.timeout_ms = options.timeout_seconds * 1000;
  doctor.ask_engines = arguments.engines;
  for (const char c : OperatorName()) doctor.operator_name += c < ' ' || c > '~' ? '?' : c;
  const auto add = [&](const char* service, const std::string& address) {
    if (!address.empty()) doctor.targets.push_back({service, address});
  };
  add("auth", options.auth_target);
  add("billing", options.billing_target);
  add("dashboard", arguments.dashboard_target);
  // With no other source, check what the other commands would call.
  if (doctor.targets.empty() && arguments.configs.empty()) add("allinone", options.target);
  return doctor;
}

void RunDoctor(Invocation& invocation, const DoctorArguments& arguments) {
  const Options& options = invocation.options();
  const DoctorOptions doctor = OptionsOf(options, arguments);
  const Inventory inventory = ReadInventory(arguments.configs);
  Checks checks;
  AddConfigurationChecks(inventory, checks);
  AddCertificateChecks(inventory, doctor, checks);
  const auto versions = AddProcessChecks(inventory, doctor, checks);
  AddDatabaseChecks(inventory, doctor, checks);
  AddRedisChecks(inventory, doctor, checks);
  AddMachineChecks(inventory, doctor, checks);
  AddEngineChecks(inventory, doctor, checks);
  Report report = RunChecks(std::move(checks), doctor.timeout_ms);
  report.lines.push_back(VersionLine(*versions));
  const bool colors = ::isatty(STDOUT_FILENO) == 1;
  std::fputs(
      (options.json ? ReportAsJson(report) : ReportAsText(report, colors, arguments.quiet)).c_str(),
      stdout);
  invocation.set_exit_code(ExitCodeOf(report));
  if (report.all_done) return;
  // A check hangs: exit without destructors, because its thread still runs.
  std::fflush(stdout);
  std::_Exit(ExitCodeOf(report));
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<DoctorArguments>();
  CLI::App* doctor = app.add_subcommand(
      "doctor",
      "Check configuration, certificates, addresses, clocks, versions, databases, Redis, machine "
      "and engines, and say what to do. Exit code: 0 nothing to do, 1 warnings, 2 failures");
  doctor->add_option("--config", arguments->configs,
                     "Configuration file of a service, or a folder of them; may be repeated");
  doctor
      ->add_option("--dashboard-target", arguments->dashboard_target,
                   "Address of the dashboard's admin services, for the engines as routers see them")
      ->envname("TOLLGATE_DASHBOARD");
  doctor->add_flag("--engines", arguments->engines,
                   "Also send each engine a request of one token for each of its models");
  doctor->add_flag("--quiet", arguments->quiet, "Only warnings and failures");
  doctor->callback([&invocation, arguments] { RunDoctor(invocation, *arguments); });
}

}  // namespace tollgate::cli
