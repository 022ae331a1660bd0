#include "services/auth/storage/audit_command.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>
#include <string_view>

#include "common/base/crypto.h"
#include "common/config/config.h"
#include "common/json/writer.h"
#include "common/sql/beside.h"
#include "services/auth/storage/audit_log.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::auth {
namespace {

constexpr std::string_view kVerb = "verify-audit";

struct Arguments {
  std::string url, config;
  AuditCheckpoints checkpoints;
  bool json = false;
};

int Failed(const std::string& message, int code) {
  std::fprintf(stderr, "tollgate-auth: %s\n", message.c_str());
  return code;
}

// The database of a configuration file of auth or of the all-in-one; "" with the error otherwise.
std::string UrlOf(const std::string& file, std::string& error) {
  config::v1::AuthConfig auth;
  auto loaded = config::LoadFile(file, auth);
  if (loaded.ok()) return auth.auth().sql().url();
  config::v1::AllInOneConfig all;
  if (config::LoadFile(file, all).ok()) return all.auth().sql().url();
  error = loaded.error();
  return "";
}

int Verify(const Arguments& arguments) {
  std::string error = "--database URL or --config FILE is required";
  const std::string url = arguments.config.empty() ? arguments.url : UrlOf(arguments.config, error);
  if (url.empty()) return Failed(error, 2);
  auto connection = sql::ConnectBeside(url, /*read_only=*/true);
  if (!connection.ok()) return Failed(connection.error().message, 1);
  const auto finding = VerifyAuditLog(**connection, arguments.checkpoints);
  if (!finding.ok()) return Failed(finding.error().message, 1);
  const bool ok = finding->problem.empty();
  if (arguments.json) {
    std::puts(json::Writer()
                  .Flag("ok", ok)
                  .Number("sequence", finding->sequence)
                  .Text("hash", HexEncode(finding->hash))
                  .Number("checkpoints", finding->checkpoints)
                  .Text("problem", finding->problem)
                  .Done()
                  .c_str());
  } else if (ok) {
    std::printf("The audit log is whole: %lld events, hash %s, %lld checkpoints compared\n",
                static_cast<long long>(finding->sequence), HexEncode(finding->hash).c_str(),
                static_cast<long long>(finding->checkpoints));
  } else {
    std::printf("THE AUDIT LOG DOES NOT HOLD: %s\n  It holds up to event %lld.\n",
                finding->problem.c_str(), static_cast<long long>(finding->sequence));
  }
  return ok ? 0 : 1;
}

}  // namespace

std::optional<int> RunAuditCommand(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != kVerb) return std::nullopt;
  CLI::App app("The auth service of Tollgate", "tollgate-auth");
  app.require_subcommand(1);
  CLI::App& command = *app.add_subcommand(
      std::string(kVerb), "Verify the audit log from its database, beside a serving auth");
  Arguments arguments;
  auto* url = command.add_option("--database", arguments.url,
                                 "The database of auth: sqlite:/path or postgresql://…");
  command
      .add_option("--config", arguments.config,
                  "Instead: the configuration file of auth or of the all-in-one")
      ->excludes(url);
  auto* file = command.add_option("--checkpoints", arguments.checkpoints.file,
                                  "Also compare with the signed checkpoints of this file");
  auto* key = command.add_option("--checkpoint-key", arguments.checkpoints.key_file,
                                 "PEM file with the public key of the checkpoints");
  file->needs(key);
  key->needs(file);
  command.add_flag("--json", arguments.json, "Print JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return Verify(arguments);
}

}  // namespace tollgate::auth
