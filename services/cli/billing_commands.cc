#include <CLI/CLI.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "services/cli/local_commands.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

void AddClock(CLI::App& app, Invocation& invocation) {
  CLI::App& group = *app.add_subcommand("clock", "Dates of a workspace's ledger entries");
  group.require_subcommand(1);
  CLI::App& repair = *group.add_subcommand(
      "repair", "Date new entries by the ledger's time again, after a clock has run ahead");
  struct Words {
    std::string workspace, reason;
  };
  auto words = std::make_shared<Words>();
  repair.add_option("-w,--workspace", words->workspace, "Workspace")->required();
  repair.add_option("--reason", words->reason, "Reason, for the ledger")->required();
  repair.callback([&invocation, words] {
    const auto stub = invocation.Books();
    if (!stub) return;
    pb::RepairClockRequest request;
    request.set_name("workspaces/" + words->workspace + "/balance");
    request.set_reason(words->reason);
    request.set_request_id(invocation.RequestId());
    pb::RepairClockResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->RepairClock(&context, request, &response);
        })) {
      return;
    }
    Table table({{"workspace_id", "Workspace"}, {"moved_back_us", "Moved back (microseconds)"}});
    table.Add({Text(words->workspace), Integer(response.moved_back_us())});
    invocation.ShowRecord(table);
  });
}

// Converts "2026-11" to 202611.
int64_t MonthNumber(const std::string& month) {
  std::string digits = month;
  std::erase(digits, '-');
  return digits.empty() ? 0 : std::stoll(digits);
}

struct EntriesQuery {
  std::string workspace;
  int limit = 100;
  int64_t before = 0;
};

void ShowEntries(Invocation& invocation, const EntriesQuery& query) {
  const auto stub = invocation.Books();
  if (!stub) return;
  pb::ListTransactionsRequest request;
  request.set_parent("workspaces/" + query.workspace);
  if (query.before > 0) {
    request.set_filter("sequence < \"" + std::to_string(query.before) + "\"");
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
  for (int left = query.limit; left > 0;) {
    request.set_page_size(std::min(left, 200));
    pb::ListTransactionsResponse page;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->ListTransactions(&context, request, &page);
        })) {
      return;
    }
    for (const pb::Transaction& entry : page.transactions()) {
      table.Add({Integer(std::stoll(LastPart(entry.name()))), Time(entry.create_time()),
                 Text(entry.kind()), Usd(entry.amount_usd()), Text(entry.debit_account()),
                 Text(entry.credit_account()), Integer(MonthNumber(entry.month())),
                 Text(entry.request()), Text(entry.memo())});
    }
    left -= page.transactions_size();
    if (page.next_page_token().empty()) break;
    request.set_page_token(page.next_page_token());
  }
  invocation.ShowList(table, "entries", "No entries yet.");
}

void AddEntries(CLI::App& app, Invocation& invocation) {
  CLI::App& command = *app.add_subcommand("entries", "Ledger entries of a workspace, newest first");
  auto query = std::make_shared<EntriesQuery>();
  command.add_option("workspace,-w,--workspace", query->workspace, "Workspace")->required();
  command.add_option("--limit", query->limit, "At most this many; default 100")
      ->check(CLI::PositiveNumber);
  command.add_option("--before", query->before, "Only entries before this number")
      ->check(CLI::PositiveNumber);
  command.callback([&invocation, query] { ShowEntries(invocation, *query); });
}

volatile std::sig_atomic_t interrupted = 0;

// Starts a verification and waits for its end; Ctrl-C cancels it. Returns false after reporting an
// error.
bool Verify(Invocation& invocation, const std::string& workspace, pb::LedgerVerification& found) {
  const auto stub = invocation.Verifications();
  if (!stub) return false;
  pb::CreateLedgerVerificationRequest request;
  request.set_request_id(invocation.RequestId());
  if (!workspace.empty()) {
    request.mutable_ledger_verification()->set_workspace("workspaces/" + workspace);
  }
  if (!invocation.Call("billing", [&](auto& context) {
        return stub->CreateLedgerVerification(&context, request, &found);
      })) {
    return false;
  }
  std::signal(SIGINT, [](int) { interrupted = 1; });
  pb::GetLedgerVerificationRequest get;
  get.set_name(found.name());
  for (int64_t pause_ms = 10; found.state() == pb::LEDGER_VERIFICATION_STATE_RUNNING;
       pause_ms = std::min<int64_t>(2 * pause_ms, 500)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    const bool answered = invocation.Call("billing", [&](auto& context) {
      if (interrupted == 0) return stub->GetLedgerVerification(&context, get, &found);
      pb::CancelLedgerVerificationRequest cancel;
      cancel.set_name(get.name());
      return stub->CancelLedgerVerification(&context, cancel, &found);
    });
    if (!answered) return false;
    if (interrupted != 0) break;
  }
  if (found.state() == pb::LEDGER_VERIFICATION_STATE_CONSISTENT ||
      found.state() == pb::LEDGER_VERIFICATION_STATE_VIOLATED) {
    return true;
  }
  if (interrupted != 0 || found.state() == pb::LEDGER_VERIFICATION_STATE_CANCELLED) {
    invocation.ReportError("cancelled", "the verification was cancelled before its end");
  } else {
    invocation.ReportError("broken_off",
                           "the verification was interrupted: its process stopped or its database "
                           "failed; run it again");
  }
  return false;
}

void ShowVerification(Invocation& invocation, const pb::LedgerVerification& found) {
  const bool ok = found.state() == pb::LEDGER_VERIFICATION_STATE_CONSISTENT;
  if (invocation.options().json) {
    Table table({{"ok", ""},
                 {"workspaces", ""},
                 {"entries", ""},
                 {"holds", ""},
                 {"usage_records", ""},
                 {"violations", ""}});
    table.Add({Bool(ok), Integer(found.workspaces()), Integer(found.entries()),
               Integer(found.holds()), Integer(found.usage_records()),
               List({found.violations().begin(), found.violations().end()}, "none")});
    invocation.ShowRecord(table);
  } else {
    std::printf("%s: %lld entries, %lld holds and %lld usage records of %lld workspaces\n",
                ok ? "The ledger is consistent" : "LEDGER VIOLATIONS FOUND",
                static_cast<long long>(found.entries()), static_cast<long long>(found.holds()),
                static_cast<long long>(found.usage_records()),
                static_cast<long long>(found.workspaces()));
    for (const std::string& violation : found.violations()) {
      std::printf("  %s\n", violation.c_str());
    }
  }
  if (!ok) invocation.set_exit_code(1);
}

void AddVerifyLedger(CLI::App& app, Invocation& invocation) {
  CLI::App& command =
      *app.add_subcommand("verify-ledger", "Verify the whole ledger; exit code 1 on any violation");
  auto workspace = std::make_shared<std::string>();
  auto local = std::make_shared<std::vector<std::string>>();
  command.add_option("workspace,-w,--workspace", *workspace, "Only this workspace; default: all");
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
  forward("--state",
          "With --database: keep the progress in this file; a later run continues from it");
  forward("--checkpoints",
          "With --database: also compare with the signed checkpoints of this file");
  forward("--checkpoint-key", "PEM file with the public key of the checkpoints");
  forward("--archive", "With --database: also verify the archived months in this folder");
  command.callback([&invocation, workspace, local] {
    if (!local->empty()) {
      if (!workspace->empty()) local->insert(local->end(), {"--workspace", *workspace});
      if (invocation.options().json) local->push_back("--json");
      return RunBillingBinary(invocation, "verify", *local);
    }
    pb::LedgerVerification found;
    if (Verify(invocation, *workspace, found)) ShowVerification(invocation, found);
  });
}

void AddDistribute(CLI::App& group, Invocation& invocation) {
  CLI::App& command = *group.add_subcommand(
      "distribute",
      "Distribute the ledger over the servers of Citus, after the migrations that its database "
      "lacks; without --apply: say what it would do");
  auto words = std::make_shared<std::vector<std::string>>();
  for (const auto& [name, what] :
       {std::pair("--database", "postgresql://… of the coordinator"),
        std::pair("--config", "Instead: the configuration file of billing"),
        std::pair("--shards", "Pieces of each table, which move between servers; default 32")}) {
    command.add_option_function<std::string>(
        name,
        [words, name](const std::string& value) { words->insert(words->end(), {name, value}); },
        what);
  }
  command.add_flag_callback(
      "--apply", [words] { words->push_back("--apply"); },
      "Do it. Requests get 503 until the rows are copied");
  command.callback([&invocation, words] { RunBillingBinary(invocation, "distribute", *words); });
}

void AddLedger(CLI::App& app, Invocation& invocation) {
  CLI::App& group = *app.add_subcommand("ledger", "The ledger's database");
  group.require_subcommand(1);
  CLI::App& archive =
      *group.add_subcommand("archive", "Move closed months into files while billing runs");
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
    words->insert(words->end(), {"--actor", OperatorName()});
    RunBillingBinary(invocation, "archive", *words);
  });
  AddDistribute(group, invocation);
}

struct StatementWords {
  std::string month, workspace, database, config, csv, pdf;
};

// Writes one document from billing to this file, or CSV to standard output if the file name is
// empty.
bool WriteStatement(Invocation& invocation, const StatementWords& words, pb::StatementFormat format,
                    const std::string& file) {
  const auto stub = invocation.Statements();
  if (!stub) return false;
  pb::DownloadStatementRequest request;
  request.set_name("workspaces/" + words.workspace + "/statements/" + words.month);
  request.set_format(format);
  google::api::HttpBody body;
  if (!invocation.Call("billing", [&](auto& context) {
        return stub->DownloadStatement(&context, request, &body);
      })) {
    return false;
  }
  if (file.empty()) {
    std::fputs(body.data().c_str(), stdout);
    return true;
  }
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << body.data();
  if (!out.flush()) {
    invocation.ReportError("cannot_write", "cannot write " + file);
    return false;
  }
  return true;
}

void AddStatementList(CLI::App& group, Invocation& invocation) {
  CLI::App& command = *group.add_subcommand(
      "list", "Balances and totals of each month that is not archived, newest first");
  auto query = std::make_shared<pb::ListStatementsRequest>();
  command
      .add_option_function<std::string>(
          "-w,--workspace",
          [query](const std::string& id) { query->set_parent("workspaces/" + id); }, "Workspace")
      ->required();
  command
      .add_option_function<int>(
          "--limit", [query](const int& limit) { query->set_page_size(limit); },
          "At most this many; default 50")
      ->check(CLI::Range(1, 200));
  command.add_option_function<std::string>(
      "--page-token", [query](const std::string& token) { query->set_page_token(token); },
      "Continue a list after this page");
  command.callback([&invocation, query] {
    const auto stub = invocation.Statements();
    if (!stub) return;
    pb::ListStatementsResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->ListStatements(&context, *query, &response);
        })) {
      return;
    }
    Table table({{"month", "MONTH"},
                 {"opening_usd", "OPENING"},
                 {"added_usd", "ADDED"},
                 {"removed_usd", "REMOVED"},
                 {"used_usd", "USED"},
                 {"closing_usd", "CLOSING"},
                 {"preliminary_at", "PRELIMINARY AT (UTC)"}});
    for (const pb::Statement& one : response.statements()) {
      table.Add({Text(LastPart(one.name())), Usd(one.opening_usd()), Usd(one.added_usd()),
                 Usd(one.removed_usd()), Usd(one.used_usd()), Usd(one.closing_usd()),
                 Time(one.preliminary_time())});
    }
    invocation.ShowList(table, "statements", "No statements.");
    if (!response.next_page_token().empty() && !invocation.options().json) {
      std::printf("More: --page-token %s\n", response.next_page_token().c_str());
    }
  });
}

void AddStatement(CLI::App& app, Invocation& invocation) {
  CLI::App& command = *app.add_subcommand("statement",
                                          "The statement of a workspace and month, as CSV to "
                                          "standard output or to files; or their list");
  AddStatementList(command, invocation);
  auto words = std::make_shared<StatementWords>();
  command.add_option("month", words->month, "YYYY-MM, in UTC");
  command.add_option("-w,--workspace", words->workspace, "Workspace");
  command.add_option("--csv", words->csv, "Write CSV to this file");
  command.add_option("--pdf", words->pdf, "Write PDF to this file");
  auto* url = command.add_option("--database", words->database,
                                 "Read this database (sqlite:/path or postgresql://…) in this "
                                 "process instead of asking billing");
  command.add_option("--config", words->config, "The same, with the database of this file")
      ->excludes(url);
  command.callback([&invocation, &command, words] {
    if (!command.get_subcommands().empty()) return;  // list
    if (words->month.empty()) throw CLI::RequiredError("month");
    if (words->workspace.empty()) throw CLI::RequiredError("--workspace");
    if (!words->database.empty() || !words->config.empty()) {
      std::vector<std::string> local = {words->month, "--workspace", words->workspace};
      for (const auto& [name, value] :
           {std::pair("--database", &words->database), std::pair("--config", &words->config),
            std::pair("--csv", &words->csv), std::pair("--pdf", &words->pdf)}) {
        if (!value->empty()) local.insert(local.end(), {name, *value});
      }
      return RunBillingBinary(invocation, "statement", local);
    }
    ::umask(077);  // only this user may read the files it writes
    if (!words->pdf.empty() &&
        !WriteStatement(invocation, *words, pb::STATEMENT_FORMAT_PDF, words->pdf)) {
      return;
    }
    if (!words->csv.empty() || words->pdf.empty()) {
      WriteStatement(invocation, *words, pb::STATEMENT_FORMAT_CSV, words->csv);
    }
  });
}

}  // namespace

void AddBillingCommands(CLI::App& app, Invocation& invocation) {
  AddClock(app, invocation);
  AddEntries(app, invocation);
  AddVerifyLedger(app, invocation);
  AddLedger(app, invocation);
  AddStatement(app, invocation);
}

}  // namespace tollgate::cli
