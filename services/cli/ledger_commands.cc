#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "services/cli/local_commands.h"
#include "tollgate/admin/v1/verifications.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

volatile std::sig_atomic_t interrupted = 0;

// Starts a verification and waits for its end; Ctrl-C cancels it. Returns false after reporting an
// error.
bool Verify(Invocation& invocation, const std::string& workspace, pb::LedgerVerification& found) {
  pb::CreateLedgerVerificationRequest request;
  request.set_request_id(invocation.RequestId());
  if (!workspace.empty()) {
    request.mutable_ledger_verification()->set_workspace("workspaces/" + workspace);
  }
  if (!invocation.Call("LedgerVerificationService.CreateLedgerVerification", request, found)) {
    return false;
  }
  std::signal(SIGINT, [](int) { interrupted = 1; });
  pb::GetLedgerVerificationRequest get;
  get.set_name(found.name());
  for (int64_t pause_ms = 10; found.state() == pb::LEDGER_VERIFICATION_STATE_RUNNING;
       pause_ms = std::min<int64_t>(2 * pause_ms, 500)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    if (interrupted != 0) {
      pb::CancelLedgerVerificationRequest cancel;
      cancel.set_name(get.name());
      const char* method = "LedgerVerificationService.CancelLedgerVerification";
      if (!invocation.Call(method, cancel, found)) return false;
      break;
    }
    if (!invocation.Call("LedgerVerificationService.GetLedgerVerification", get, found)) {
      return false;
    }
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

void VerifyLedger(Invocation& invocation, const Arguments& arguments) {
  auto local = ForBillingBinary(
      arguments, {"database", "config", "state", "checkpoints", "checkpoint-key", "archive"});
  const std::string workspace = arguments.Get("workspace");
  if (!local.empty()) {
    if (!workspace.empty()) local.insert(local.end(), {"--workspace", workspace});
    if (invocation.options().json) local.push_back("--json");
    return RunBillingBinary(invocation, "verify", local);
  }
  pb::LedgerVerification found;
  if (Verify(invocation, workspace, found)) ShowVerification(invocation, found);
}

void Distribute(Invocation& invocation, const Arguments& arguments) {
  auto words = ForBillingBinary(arguments, {"database", "config", "shards"});
  if (arguments.Has("apply")) words.push_back("--apply");
  RunBillingBinary(invocation, "distribute", words);
}

void Archive(Invocation& invocation, const Arguments& arguments) {
  auto words = ForBillingBinary(arguments, {"database", "config", "before", "to"});
  words.insert(words.end(), {"--actor", OperatorName()});
  RunBillingBinary(invocation, "archive", words);
}

void Archived(Invocation& invocation, const Arguments& arguments) {
  auto words = ForBillingBinary(
      arguments, {"database", "config", "from", "workspace", "month", "request", "key"});
  if (arguments.Has("entries")) words.push_back("--entries");
  if (invocation.options().json) words.push_back("--json");
  RunBillingBinary(invocation, "archived", words);
}

std::vector<Flag> ArchivedFlags() {
  return {Flag("--database", "sqlite:/path or postgresql://…"),
          Flag("--config", "Instead: the configuration file of billing or of the all-in-one"),
          Flag("--from", "Folder of the archive").Required(),
          Flag("-w,--workspace", "Workspace").Required(),
          Flag("--month", "Only the file of this month, as YYYY-MM"),
          Flag("--entries", "Entries of the ledger instead of requests").Switch(),
          Flag("--request",
               "Only this request, as 32 hexadecimal digits, or of the entries this command"),
          Flag("--key", "Only requests of this API key")};
}

std::vector<Flag> VerifyFlags() {
  return {Flag("workspace,-w,--workspace", "Only this workspace; default: all"),
          Flag("--database",
               "Verify this database (sqlite:/path or postgresql://…) in this process instead of "
               "asking billing, which verifies one ledger at a time"),
          Flag("--config", "The same, with the database of this configuration file"),
          Flag("--state",
               "With --database: keep the progress in this file; a later run continues from it"),
          Flag("--checkpoints",
               "With --database: also compare with the signed checkpoints of this file"),
          Flag("--checkpoint-key", "PEM file with the public key of the checkpoints"),
          Flag("--archive", "With --database: also verify the archived months in this folder")};
}

}  // namespace

std::vector<Command> LedgerCommands() {
  return {
      Command("clock", "Dates of a workspace's ledger entries"),
      Command("clock repair",
              "Date new entries by the ledger's time again, after a clock has run ahead",
              "LedgerService.RepairClock",
              {WorkspaceFlag(), Flag("--reason", "Reason, for the ledger", "reason").Required()})
          .Sets("name", "workspaces/{workspace}/balance")
          .Shows("workspace_id=@workspace Workspace | moved_back_us Moved back (microseconds)"),
      Command("entries", "Ledger entries of a workspace, newest first",
              "LedgerService.ListTransactions",
              {PositionalParentFlag(), LimitFlag(100),
               Flag("--before", "Only entries before this number").Positive().Filter("sequence <")})
          .Lists("transactions", "No entries yet.",
                 "sequence=name.number NO. | at=create_time AT (UTC) | kind KIND | "
                 "amount_usd AMOUNT | debit=debit_account DEBIT | credit=credit_account CREDIT | "
                 "month=month.number MONTH | request_id=request REQUEST | memo MEMO",
                 "entries"),
      Command("verify-ledger", "Verify the whole ledger; exit code 1 on any violation",
              VerifyLedger, VerifyFlags()),
      Command("ledger", "The ledger's database"),
      Command("ledger archive", "Move closed months into files while billing runs", Archive,
              {Flag("--database", "sqlite:/path or postgresql://…"),
               Flag("--config", "Instead: the configuration file of billing or of the all-in-one"),
               Flag("--before", "All months before this one, as YYYY-MM").Required(),
               Flag("--to", "Folder of the files; it must exist").Required()}),
      Command("ledger archived",
              "A workspace's requests or entries of archived months, from the verified files of "
              "the archive, as CSV or (--json) JSON lines",
              Archived, ArchivedFlags()),
      Command("ledger distribute",
              "Distribute the ledger over the servers of Citus, after the migrations that its "
              "database lacks; without --apply: say what it would do",
              Distribute,
              {Flag("--database", "postgresql://… of the coordinator"),
               Flag("--config", "Instead: the configuration file of billing"),
               Flag("--shards", "Pieces of each table, which move between servers; default 32"),
               Flag("--apply", "Do it. Requests get 503 until the rows are copied").Switch()}),
  };
}

}  // namespace tollgate::cli
