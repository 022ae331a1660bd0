#include "services/billing/command/ledger_command.h"

#include <sys/stat.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <fstream>
#include <memory>

#include "common/base/clock.h"
#include "common/base/try.h"
#include "services/billing/archive/archive.h"
#include "services/billing/command/ledger_copy.h"
#include "services/billing/command/place.h"
#include "services/billing/statement/statement.h"
#include "services/billing/storage/distribute.h"

namespace tollgate::billing {
namespace {

void AddArchive(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand(
      "archive", "Move closed months of the ledger into files (docs/operations.md)");
  auto place = std::make_shared<Place>();
  auto options = std::make_shared<ArchiveOptions>();
  auto before = std::make_shared<std::string>();
  AddPlace(command, *place);
  command.add_option("--before", *before, "All months before this one, as YYYY-MM")->required();
  command.add_option("--to", options->folder, "Folder of the files; it must exist")->required();
  command.add_option("--actor", options->actor, "Your name, for the record");
  command.callback([place, options, before, &exit_code] {
    options->before = ParseMonth(*before);
    if (options->before == 0) {
      Failed("--before: \"" + *before + "\" is not a month such as 2026-01");
      exit_code = 2;
      return;
    }
    const auto connection = Connect(*place, /*read_only=*/false, &exit_code);
    if (connection == nullptr) return;
    options->now_us = SystemClock::Get().WallUs();
    auto archived = ArchiveLedger(*connection, *options);
    if (!archived.ok()) {
      exit_code = Failed(archived.error().message);
      return;
    }
    if (archived->empty()) std::printf("No month can be archived.\n");
    for (const ArchivedMonth& month : *archived) {
      std::printf("%d: %lld entries, %lld holds and %lld usage records in %s\n", month.month,
                  static_cast<long long>(month.entries), static_cast<long long>(month.holds),
                  static_cast<long long>(month.usage_records), options->folder.c_str());
    }
  });
}

void PrintPlan(const Distribution& plan, int shards) {
  for (const Distribution::Step& step : plan.migrations) {
    std::printf("migration %lld of %s: %s\n", static_cast<long long>(step.version),
                step.component.c_str(), step.name.c_str());
  }
  if (!plan.migrations.empty()) {
    std::printf("These migrations run first; tables that they create are also distributed.\n");
  }
  if (plan.distributed_tables > 0) {
    std::printf("%lld tables are distributed already.\n",
                static_cast<long long>(plan.distributed_tables));
  }
  int64_t bytes = 0;
  for (const Distribution::Table& table : plan.tables) {
    bytes += table.bytes;
    const std::string where = !table.by_shard ? "as a whole to one server"
                              : plan.distributed_tables == 0
                                  ? "by shard into " + std::to_string(shards) + " pieces"
                                  : "by shard, colocated with the others";
    std::printf("%-24s %12lld rows %12lld bytes, %s\n", table.name.c_str(),
                static_cast<long long>(table.rows), static_cast<long long>(table.bytes),
                where.c_str());
  }
  if (plan.tables.empty() && plan.migrations.empty()) {
    std::printf("There is nothing to distribute.\n");
  } else if (!plan.tables.empty()) {
    std::printf("%zu tables, %lld MiB, over %lld servers\n", plan.tables.size(),
                static_cast<long long>(bytes >> 20), static_cast<long long>(plan.servers));
  }
}

// Runs missing migrations first, so that all tables of the database are distributed.
sql::SqlResult<Distribution> Migrate(const std::string& url, sql::Connection& connection,
                                     std::span<const sql::Schema> schemas) {
  sql::Database::Options options;
  options.url = url;
  TRY(auto database, sql::Database::Open(options));
  TRY(ApplyMigrations(*database, schemas));
  return PlanDistribution(connection, schemas);
}

void AddDistribute(CLI::App& app, std::span<const sql::Schema> schemas, int& exit_code) {
  CLI::App& command = *app.add_subcommand(
      "distribute",
      "Distribute the ledger over the servers of Citus, after running missing migrations of its "
      "database (docs/operations/citus.md). Without --apply: print what it would do");
  struct Words {
    Place place;
    int shards = 32;
    bool apply = false;
  };
  auto words = std::make_shared<Words>();
  AddPlace(command, words->place);
  command
      .add_option("--shards", words->shards,
                  "Pieces of each table, the unit that moves between servers; default 32")
      ->check(CLI::Range(1, 1024));
  command.add_flag(
      "--apply", words->apply,
      "Make the changes. Meanwhile requests get 503 until the rows of the ledger are copied");
  command.callback([words, schemas, &exit_code] {
    const std::string url = UrlOf(words->place);
    const auto connection = Connect(url, /*read_only=*/false, &exit_code);
    if (connection == nullptr) return;
    auto plan = PlanDistribution(*connection, schemas);
    if (!plan.ok()) {
      exit_code = Failed(plan.error().message);
      return;
    }
    PrintPlan(*plan, words->shards);
    if (plan->tables.empty() && plan->migrations.empty()) return;
    if (!words->apply) {
      std::printf("Nothing was changed; run with --apply to do it.\n");
      return;
    }
    std::fflush(stdout);
    if (!plan->migrations.empty()) {
      plan = Migrate(url, *connection, schemas);
      if (!plan.ok()) {
        exit_code = Failed(plan.error().message);
        return;
      }
      PrintPlan(*plan, words->shards);
      std::fflush(stdout);
      if (plan->tables.empty()) return;
    }
    auto done = DistributeLedger(*connection, *plan, words->shards);
    if (!done.ok()) {
      exit_code = Failed(done.error().message);
      return;
    }
    std::printf("The ledger is distributed. Running billings notice within seconds.\n");
  });
}

void AddStatement(CLI::App& app, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("statement", "Write the statement of a workspace and month");
  auto place = std::make_shared<Place>();
  auto month = std::make_shared<std::string>();
  auto workspace = std::make_shared<std::string>();
  auto csv = std::make_shared<std::string>();
  auto pdf = std::make_shared<std::string>();
  AddPlace(command, *place);
  command.add_option("month", *month, "YYYY-MM, in UTC")->required();
  command.add_option("-w,--workspace", *workspace, "Workspace")->required();
  command.add_option("--csv", *csv, "Write CSV to this file");
  command.add_option("--pdf", *pdf, "Write PDF to this file");
  command.callback([place, month, workspace, csv, pdf, &exit_code] {
    exit_code = 2;
    if (ParseMonth(*month) == 0 || (csv->empty() && pdf->empty())) {
      Failed("a month such as 2026-01 and --csv FILE or --pdf FILE are required");
      return;
    }
    const auto connection = Connect(*place, /*read_only=*/true, &exit_code);
    if (connection == nullptr) return;
    auto statement =
        ReadStatement(*connection, *workspace, ParseMonth(*month), SystemClock::Get().WallUs());
    if (!statement.ok()) {
      exit_code = Failed(statement.error().message);
      return;
    }
    const std::pair<std::string, std::string> files[] = {
        {*csv, csv->empty() ? "" : ToCsv(*statement)},
        {*pdf, pdf->empty() ? "" : ToPdf(*statement)}};
    for (const auto& [file, text] : files) {
      if (file.empty()) continue;
      std::ofstream out(file, std::ios::binary | std::ios::trunc);
      out << text;
      if (text.empty() || !out.flush()) exit_code = Failed("cannot write " + file);
    }
  });
}

}  // namespace

std::optional<int> RunLedgerCommand(int argc, char** argv, std::span<const sql::Schema> schemas) {
  if (argc < 2 || argv[1][0] == '-') return std::nullopt;
  // Only the owner can read the files that it writes.
  ::umask(077);
  int exit_code = 0;
  CLI::App app("tollgate-billing: commands on the ledger's database", "tollgate-billing");
  app.require_subcommand(1);
  AddVerify(app, exit_code);
  AddArchive(app, exit_code);
  AddArchived(app, exit_code);
  AddDistribute(app, schemas, exit_code);
  AddCopyCommand(app, schemas, exit_code);
  AddStatement(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace tollgate::billing
