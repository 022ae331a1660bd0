#include "services/auth/command/auth_command.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/auth_schema/auth_schema.h"
#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/config/config.h"
#include "common/json/writer.h"
#include "common/sql/beside.h"
#include "common/sql/copy.h"
#include "services/auth/storage/audit_copy.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::auth {
namespace {

struct Arguments {
  std::string url, config;
  std::vector<std::string> sources;  // NAME=URL
  AuditCheckpoints checkpoints;
  bool json = false;
};

int Failed(const std::string& message, int code) {
  std::fprintf(stderr, "tollgate-auth: %s\n", message.c_str());
  return code;
}

// The auth database of a configuration file (auth or all-in-one), and for the all-in-one the
// sources.
std::string UrlOf(const std::string& file, std::vector<std::string>& sources, std::string& error) {
  config::v1::AuthConfig auth;
  auto loaded = config::LoadFile(file, auth);
  if (loaded.ok()) return auth.auth().sql().url();
  config::v1::AllInOneConfig all;
  if (config::LoadFile(file, all).ok()) {
    sources.push_back("billing=" + all.billing().sql().url());
    return all.auth().sql().url();
  }
  error = loaded.error();
  return "";
}

void PrintJson(const FullFinding& finding) {
  std::string sources;
  for (const SourceFinding& source : finding.sources) {
    sources += (sources.empty() ? "" : ",") + json::Writer()
                                                  .Text("source", source.name)
                                                  .Number("sequence", source.sequence)
                                                  .Text("hash", HexEncode(source.hash))
                                                  .Number("waiting", source.waiting)
                                                  .Text("problem", source.problem)
                                                  .Done();
  }
  std::puts(json::Writer()
                .Flag("ok", finding.ok())
                .Number("sequence", finding.log.sequence)
                .Text("hash", HexEncode(finding.log.hash))
                .Number("checkpoints", finding.log.checkpoints)
                .Raw("sources", "[" + sources + "]")
                .Text("problem", finding.problem())
                .Done()
                .c_str());
}

void PrintText(const FullFinding& finding) {
  const auto number = [](int64_t value) { return static_cast<long long>(value); };
  if (finding.ok()) {
    std::printf("The audit log is valid: %lld events, hash %s, %lld checkpoints compared\n",
                number(finding.log.sequence), HexEncode(finding.log.hash).c_str(),
                number(finding.log.checkpoints));
  } else {
    std::printf("THE AUDIT LOG IS NOT VALID: %s\n  It is valid up to event %lld.\n",
                finding.problem().c_str(), number(finding.log.sequence));
  }
  for (const SourceFinding& source : finding.sources) {
    if (!source.problem.empty()) {
      std::printf("%s: %s\n  Compared up to entry %lld.\n", source.name.c_str(),
                  source.problem.c_str(), number(source.sequence));
      continue;
    }
    std::printf("%s: its %lld entries are valid and in the log, %lld more wait, hash %s\n",
                source.name.c_str(), number(source.sequence), number(source.waiting),
                HexEncode(source.hash).c_str());
  }
  for (const std::string& name : finding.not_compared) {
    std::printf(
        "%s: only its events in this log were verified, which is all that this database has.\n"
        "  To compare them with its own log: tollgate-auth verify-audit --source %s=URL\n",
        name.c_str(), name.c_str());
  }
}

// One source and its connection.
struct OpenSource {
  std::unique_ptr<sql::Connection> connection;
  AuditSource source;
};

BasicResult<OpenSource, std::string> Open(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return Fail{"--source is NAME=URL, for example billing=sqlite:/path"};
  }
  auto connection = sql::ConnectBeside(text.substr(equals + 1), /*read_only=*/true);
  if (!connection.ok()) return Fail{text.substr(0, equals) + ": " + connection.error().message};
  AuditSource source = DatabaseSource(text.substr(0, equals), **connection);
  return OpenSource{*std::move(connection), std::move(source)};
}

int Verify(Arguments arguments) {
  std::string error = "--database URL or --config FILE is required";
  const std::string url =
      arguments.config.empty() ? arguments.url : UrlOf(arguments.config, arguments.sources, error);
  if (url.empty()) return Failed(error, 2);
  auto connection = sql::ConnectBeside(url, /*read_only=*/true);
  if (!connection.ok()) return Failed(connection.error().message, 1);
  std::vector<OpenSource> opened;
  std::vector<AuditSource> sources;
  for (const std::string& text : arguments.sources) {
    auto source = Open(text);
    if (!source.ok()) return Failed(source.error(), 1);
    sources.push_back(source->source);
    opened.push_back(*std::move(source));
  }
  const auto finding =
      VerifyAudit(**connection, arguments.checkpoints, sources, SystemClock::Get().WallUs());
  if (!finding.ok()) return Failed(finding.error().message, 1);
  if (arguments.json) {
    PrintJson(*finding);
  } else {
    PrintText(*finding);
  }
  return finding->ok() ? 0 : 1;
}

void AddVerifyAudit(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("verify-audit", "Verify the audit log in its database while auth runs");
  auto arguments = std::make_shared<Arguments>();
  auto* url = command.add_option("--database", arguments->url,
                                 "The database of auth: sqlite:/path or postgresql://…");
  command
      .add_option("--config", arguments->config,
                  "Instead: the configuration file of auth or of the all-in-one")
      ->excludes(url);
  command.add_option("--source", arguments->sources,
                     "Also compare with the entries of this service: NAME=URL of its database, for "
                     "example billing=postgresql://…; the all-in-one's --config has it");
  auto* file = command.add_option("--checkpoints", arguments->checkpoints.file,
                                  "Also compare with the signed checkpoints of this file");
  auto* key = command.add_option("--checkpoint-key", arguments->checkpoints.key_file,
                                 "PEM file with the public key of the checkpoints");
  file->needs(key);
  key->needs(file);
  command.add_flag("--json", arguments->json, "Print JSON");
  command.callback([arguments, &exit_code] { exit_code = Verify(*arguments); });
}

// Verifies the log of one database, and prints what it found.
int VerifyCopy(const std::string& url) {
  Arguments arguments;
  arguments.url = url;
  return Verify(std::move(arguments));
}

int Copy(const std::string& from, const std::string& to) {
  if (const int code = VerifyCopy(from); code != 0) return code;
  constexpr sql::Schema kSchemas[] = {auth_schema::kSchema};
  auto tables =
      sql::CopyDatabase({.from = from, .to = to, .schemas = kSchemas, .prepare = nullptr});
  if (!tables.ok()) return Failed(tables.error().message, 1);
  std::printf("%s", sql::ToText(*tables).c_str());
  return VerifyCopy(to);
}

void AddCopy(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand(
      "copy",
      "Copy auth's database into a new one while auth is stopped (docs/operations/databases.md)");
  auto from = std::make_shared<std::string>();
  auto to = std::make_shared<std::string>();
  command.add_option("--from", *from, "Its database now: sqlite:/path or postgresql://…")
      ->required();
  command.add_option("--to", *to, "The new database, which must be empty")->required();
  command.callback([from, to, &exit_code] { exit_code = Copy(*from, *to); });
}

}  // namespace

std::optional<int> RunAuthCommand(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  int exit_code = 0;
  CLI::App app("tollgate-auth: commands on the database of auth", "tollgate-auth");
  app.require_subcommand(1);
  AddVerifyAudit(app, exit_code);
  AddCopy(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace tollgate::auth
