// tollgate: the operator's command line, a client of the admin services of auth and billing.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/core_dumps.h"
#include "common/base/text.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "services/cli/run_command.h"

namespace {

using tollgate::cli::Options;

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string DefaultTarget() {
  const std::string home = FromEnvironment("TOLLGATE_HOME");
  return "unix:" + (home.empty() ? ".tollgate" : home) + "/run/admin.sock";
}

void AddOptions(CLI::App& app, Options& options) {
  options.target = DefaultTarget();
  app.add_flag("--json", options.json, "Print JSON");
  app.add_option("--target", options.target, "Address of the services: unix:/path or host:port")
      ->envname("TOLLGATE_ADMIN")
      ->capture_default_str();
  app.add_option("--auth-target", options.auth_target,
                 "Address of auth, if it is a separate process")
      ->envname("TOLLGATE_AUTH");
  app.add_option("--billing-target", options.billing_target,
                 "Address of billing, if it is a separate process")
      ->envname("TOLLGATE_BILLING");
  app.add_option("--timeout", options.timeout_seconds, "Seconds to wait for a response")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  app.add_option("--request-id", options.request_id,
                 "Idempotency key (1-64 characters): repeated with the same key, a change is "
                 "applied once; default: random");
  // Set all three, or none for plain text. Unix sockets need none.
  app.add_option("--tls-ca", *options.tls.mutable_authority_file(),
                 "File of the authority that signed the certificates of the services")
      ->envname("TOLLGATE_TLS_CA");
  app.add_option("--tls-cert", *options.tls.mutable_certificate_file(),
                 "File of your certificate, spiffe://DOMAIN/operator/NAME")
      ->envname("TOLLGATE_TLS_CERT");
  app.add_option("--tls-key", *options.tls.mutable_private_key_file(), "File of its private key")
      ->envname("TOLLGATE_TLS_KEY");
  app.add_option("--trust-domain", *options.tls.mutable_trust_domain(),
                 "DOMAIN in the names of certificates (host.tls.trust_domain); default: tollgate")
      ->envname("TOLLGATE_TRUST_DOMAIN");
}

// The innermost subcommand that was parsed.
CLI::App* Innermost(CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

std::string PathOf(const CLI::App* app) {
  std::string path = app->get_name();
  for (app = app->get_parent(); app != nullptr; app = app->get_parent())
    path = app->get_name() + " " + path;
  return path;
}

// Prints the problem with the arguments and the available commands.
int ReportUsageError(CLI::App& app, const CLI::ParseError& error) {
  CLI::App* at = Innermost(&app);
  std::vector<std::string> commands;
  for (const CLI::App* command : at->get_subcommands({})) commands.push_back(command->get_name());
  const std::vector<std::string> rest = app.remaining(true);
  std::string message = error.what();
  if (!commands.empty()) {
    std::string names;
    for (const std::string& name : commands) names += (names.empty() ? "" : ", ") + name;
    const auto word = std::find_if(rest.begin(), rest.end(),
                                   [](const auto& text) { return !text.starts_with('-'); });
    if (word != rest.end()) {
      const std::string closest = tollgate::ClosestName(*word, commands);
      message = PathOf(at) + " has no command \"" + *word + "\"" +
                (closest.empty() ? "" : "; did you mean \"" + closest + "\"?") +
                "\ncommands: " + names;
    } else {
      message = "a command is required: " + PathOf(at) + " COMMAND\ncommands: " + names;
    }
  }
  std::fprintf(stderr, "tollgate: %s\nhelp: %s --help\n", message.c_str(), PathOf(at).c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  tollgate::DenyCoreDumps();
  Options options;
  tollgate::cli::Invocation invocation(options);
  CLI::App app("tollgate: keys, workspaces, credit and the ledger of a Tollgate gateway",
               "tollgate");
  app.set_version_flag("--version", "tollgate " TOLLGATE_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  AddOptions(app, options);
  tollgate::cli::AddCommands(app, invocation, tollgate::cli::AllCommands());
  tollgate::cli::AddDoctorCommand(app, invocation);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    return ReportUsageError(app, error);
  }
  return invocation.exit_code();
}
