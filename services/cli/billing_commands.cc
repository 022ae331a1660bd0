#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "common/base/crypto.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "services/cli/local_commands.h"

namespace tollgate::cli {
namespace {

namespace v1 = tollgate::billing::v1;

void AddClock(CLI::App& app, Invocation& invocation) {
  CLI::App& group = *app.add_subcommand("clock", "Dates of a workspace's ledger entries");
  group.require_subcommand(1);
  CLI::App& repair = *group.add_subcommand(
      "repair", "Date new entries by the ledger's time again, after a clock has run ahead");
  auto request = std::make_shared<v1::RepairClockRequest>();
  repair
      .add_option_function<std::string>(
          "-w,--workspace", [request](const std::string& id) { request->set_workspace_id(id); },
          "Workspace")
      ->required();
  repair
      .add_option_function<std::string>(
          "--reason", [request](const std::string& reason) { request->set_reason(reason); },
          "Reason, for the ledger")
      ->required();
  repair.callback([&invocation, request] {
    const auto stub = invocation.Billing();
    if (!stub) return;
    request->set_request_id(invocation.RequestId());
    request->set_actor(invocation.options().actor);
    v1::RepairClockResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->RepairClock(&context, *request, &response);
        })) {
      return;
    }
    Table table({{"workspace_id", "Workspace"}, {"moved_back_us", "Moved back (microseconds)"}});
    table.Add({Text(request->workspace_id()), Integer(response.moved_back_us())});
    invocation.ShowRecord(table);
  });
}

void AddEntries(CLI::App& app, Invocation& invocation) {
  CLI::App& command = *app.add_subcommand("entries", "Ledger entries of a workspace, newest first");
  auto query = std::make_shared<v1::ListEntriesRequest>();
  command
      .add_option_function<std::string>(
          "workspace,-w,--workspace",
          [query](const std::string& id) { query->set_workspace_id(id); }, "Workspace")
      ->required();
  command
      .add_option_function<int>(
          "--limit", [query](const int& limit) { query->set_limit(limit); },
          "At most this many; default 100")
      ->check(CLI::PositiveNumber);
  command
      .add_option_function<int64_t>(
          "--before", [query](const int64_t& number) { query->set_before_sequence(number); },
          "Only entries before this number")
      ->check(CLI::PositiveNumber);
  command.callback([&invocation, query] {
    const auto stub = invocation.Billing();
    if (!stub) return;
    v1::ListEntriesResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->ListEntries(&context, *query, &response);
        })) {
      return;
    }
    Table table({{"sequence", "NO."},
                 {"at", "AT (UTC)"},
                 {"kind", "KIND"},
                 {"amount_usd", "AMOUNT"},
                 {"debit", "DEBIT"},
                 {"credit", "CREDIT"},
                 {"month", "MONTH"},
                 {"request_id", "REQUEST"},
                 {"memo", "MEMO"}});
    for (const v1::Entry& entry : response.entries()) {
      table.Add({Integer(entry.sequence()), Time(entry.at_us(), "-"), Text(entry.kind()),
                 Usd(entry.amount_nano_usd()), Text(entry.debit_account()),
                 Text(entry.credit_account()), Integer(entry.month()),
                 Text(HexEncode(entry.request_id())), Text(entry.memo())});
    }
    invocation.ShowList(table, "entries", "No entries yet.");
  });
}

void AddVerify(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      *app.add_subcommand("verify-ledger", "Verify the whole ledger; exit code 1 on any violation");
  auto query = std::make_shared<v1::VerifyLedgerRequest>();
  auto local = std::make_shared<std::vector<std::string>>();
  command.add_option_function<std::string>(
      "workspace,-w,--workspace", [query](const std::string& id) { query->set_workspace_id(id); },
      "Only this workspace; default: all");
  const auto forward = [&](const std::string& name, const std::string& what) {
    command.add_option_function<std::string>(
        name,
        [local, name](const std::string& value) { local->insert(local->end(), {name, value}); },
        what);
  };
  forward("--database",
          "Verify this database (sqlite:/path or postgresql://…) in this process instead of asking "
          "billing, which verifies one ledger at a time");
  forward("--config", "The same, with the database of this configuration file");
  forward("--state", "With --database: keeps the progress in this file; a run goes on there");
  forward("--checkpoints",
          "With --database: also compare with the signed checkpoints of this file");
  forward("--checkpoint-key", "PEM file with the public key of the checkpoints");
  forward("--archive", "With --database: also verify the archived months in this folder");
  command.callback([&invocation, query, local] {
    if (!local->empty()) {
      if (!query->workspace_id().empty()) {
        local->insert(local->end(), {"--workspace", query->workspace_id()});
      }
      if (invocation.options().json) local->push_back("--json");
      return RunBillingBinary(invocation, "verify", *local);
    }
    const auto stub = invocation.Billing();
    if (!stub) return;
    v1::VerifyLedgerResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->VerifyLedger(&context, *query, &response);
        })) {
      return;
    }
    if (invocation.options().json) {
      Table table({{"ok", ""},
                   {"workspaces", ""},
                   {"entries", ""},
                   {"holds", ""},
                   {"usage_records", ""},
                   {"violations", ""}});
      table.Add({Bool(response.ok()), Integer(response.workspaces()), Integer(response.entries()),
                 Integer(response.holds()), Integer(response.usage_records()),
                 List({response.violations().begin(), response.violations().end()}, "none")});
      invocation.ShowRecord(table);
    } else {
      std::printf("%s: %lld entries, %lld holds and %lld usage records of %lld workspaces\n",
                  response.ok() ? "The ledger is consistent" : "LEDGER VIOLATIONS FOUND",
                  static_cast<long long>(response.entries()),
                  static_cast<long long>(response.holds()),
                  static_cast<long long>(response.usage_records()),
                  static_cast<long long>(response.workspaces()));
      for (const std::string& violation : response.violations())
        std::printf("  %s\n", violation.c_str());
    }
    if (!response.ok()) invocation.set_exit_code(1);
  });
}

void AddLedger(CLI::App& app, Invocation& invocation) {
  CLI::App& group = *app.add_subcommand("ledger", "The ledger's database");
  group.require_subcommand(1);
  CLI::App& archive =
      *group.add_subcommand("archive", "Move closed months into files, beside a serving billing");
  auto words = std::make_shared<std::vector<std::string>>();
  const auto forward = [&](const std::string& name, const std::string& what) {
    return archive.add_option_function<std::string>(
        name,
        [words, name](const std::string& value) { words->insert(words->end(), {name, value}); },
        what);
  };
  forward("--database", "sqlite:/path or postgresql://…");
  forward("--config", "Instead: the configuration file of billing or of the all-in-one");
  forward("--before", "All months before this one, as YYYY-MM")->required();
  forward("--to", "Folder of the files; it must exist")->required();
  archive.callback([&invocation, words] {
    words->insert(words->end(), {"--actor", invocation.options().actor});
    RunBillingBinary(invocation, "archive", *words);
  });
}

void AddStatement(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      *app.add_subcommand("statement", "Write the statement of a workspace and month");
  auto words = std::make_shared<std::vector<std::string>>();
  command
      .add_option_function<std::string>(
          "month", [words](const std::string& month) { words->push_back(month); },
          "YYYY-MM, in UTC")
      ->required();
  const auto forward = [&](const std::string& name, const std::string& what) {
    const std::string option = name.substr(name.find("--"));
    return command.add_option_function<std::string>(
        name,
        [words, option](const std::string& value) { words->insert(words->end(), {option, value}); },
        what);
  };
  forward("-w,--workspace", "Workspace")->required();
  forward("--database", "sqlite:/path or postgresql://…");
  forward("--config", "Instead: the configuration file of billing or of the all-in-one");
  forward("--csv", "Write CSV to this file");
  forward("--pdf", "Write PDF to this file");
  command.callback([&invocation, words] { RunBillingBinary(invocation, "statement", *words); });
}

}  // namespace

void AddBillingCommands(CLI::App& app, Invocation& invocation) {
  AddClock(app, invocation);
  AddEntries(app, invocation);
  AddVerify(app, invocation);
  AddLedger(app, invocation);
  AddStatement(app, invocation);
}

}  // namespace tollgate::cli
