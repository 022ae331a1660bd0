#include "services/billing/command/ledger_copy.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "common/base/clock.h"
#include "common/base/try.h"
#include "common/sql/beside.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::SqlResult;

SqlResult<VerifyReport> Verify(const std::string& url) {
  TRY(auto connection, sql::ConnectBeside(url, /*read_only=*/true));
  return VerifyLedger(*connection, {});
}

// Without partitions of their months, old rows would all go to the default partition.
SqlResult<void> MakePartitions(sql::Connection& from, sql::Connection& to, int64_t now_us) {
  int64_t oldest_us = now_us;
  TRY(from.Query("SELECT at_us FROM entry ORDER BY at_us LIMIT 1", {},
                 [&](const sql::Row& row) { oldest_us = row.Int(0); }));
  return EnsurePartitions(to, now_us, UtcMonth(oldest_us));
}

}  // namespace

SqlResult<LedgerCopy> CopyLedger(const std::string& from, const std::string& to,
                                 std::span<const sql::Schema> schemas, int64_t now_us) {
  LedgerCopy copy;
  TRY(auto before, Verify(from));
  copy.before = std::move(before);
  if (!copy.before.ok()) return copy;
  TRY(auto tables,
      sql::CopyDatabase({.from = from,
                         .to = to,
                         .schemas = schemas,
                         .prepare = [now_us](sql::Connection& old_db, sql::Connection& new_db) {
                           return MakePartitions(old_db, new_db, now_us);
                         }}));
  copy.tables = std::move(tables);
  TRY(auto after, Verify(to));
  copy.after = std::move(after);
  return copy;
}

std::string ToText(const LedgerCopy& copy) {
  std::string text = sql::ToText(copy.tables);
  for (const VerifyReport* report : {&copy.before, &copy.after}) {
    for (const std::string& violation : report->violations) text += violation + "\n";
  }
  if (!copy.before.ok()) return text + "The old ledger has violations; nothing was copied.\n";
  if (!copy.after.ok()) return text + "THE NEW LEDGER HAS VIOLATIONS: do not use it.\n";
  return text + "Both ledgers are consistent, and all rows are equal: " +
         std::to_string(copy.after.entries) + " entries of " +
         std::to_string(copy.after.workspaces) + " workspaces\n";
}

void AddCopyCommand(CLI::App& app, std::span<const sql::Schema> schemas, int& exit_code) {
  CLI::App& command =
      *app.add_subcommand("copy",
                          "Copy the ledger into a new database while billing is stopped "
                          "(docs/operations/databases.md)");
  auto from = std::make_shared<std::string>();
  auto to = std::make_shared<std::string>();
  command.add_option("--from", *from, "Its database: sqlite:/path or postgresql://…")->required();
  command.add_option("--to", *to, "The new database, which must be empty")->required();
  command.callback([from, to, schemas, &exit_code] {
    const auto copy = CopyLedger(*from, *to, schemas, SystemClock::Get().WallUs());
    std::printf("%s", copy.ok() ? ToText(*copy).c_str() : "");
    if (!copy.ok()) std::fprintf(stderr, "tollgate-billing: %s\n", copy.error().message.c_str());
    exit_code = copy.ok() && copy->ok() ? 0 : 1;
  });
}

}  // namespace tollgate::billing
