#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "common/base/crypto.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace v1 = tollgate::billing::v1;

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
  command.add_option_function<std::string>(
      "workspace,-w,--workspace", [query](const std::string& id) { query->set_workspace_id(id); },
      "Only this workspace; default: all");
  command.callback([&invocation, query] {
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

}  // namespace

void AddBillingCommands(CLI::App& app, Invocation& invocation) {
  AddEntries(app, invocation);
  AddVerify(app, invocation);
}

}  // namespace tollgate::cli
