#include <cstdio>
#include <string>
#include <vector>

#include "common/money/money.h"
#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "services/cli/run_command.h"
#include "tollgate/admin/v1/adjustments.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

Command BalanceCommand() {
  return Command("balance", "Credit, holds and spending of a workspace", "LedgerService.GetBalance",
                 {Flag("workspace,-w,--workspace", "Workspace").Required()})
      .Sets("name", "workspaces/{workspace}/balance")
      .Shows(
          "workspace_id=@workspace Workspace | available_usd Available | paid_usd Paid credit | "
          "granted_usd Granted credit | held_usd Held by running requests | "
          "receivable_usd Owed after chargebacks | month Month | "
          "month_spent_usd Spent this month | month_held_usd Held this month | "
          "cap_usd?none Cap a month | open_holds Open holds | frozen?no Frozen | "
          "wallet_open Wallet open");
}

void ShowBalance(Invocation& invocation, const Arguments& arguments,
                 const google::protobuf::Message&) {
  Run(invocation, BalanceCommand(), arguments);
}

void ShowStatus(Invocation& invocation, const Arguments& arguments) {
  const std::string id = arguments.Get("request");
  std::string workspace = arguments.Get("workspace");
  const auto kept = invocation.journal().Find(id);
  if (workspace.empty() && kept) workspace = kept->workspace;
  if (workspace.empty()) {
    return invocation.ReportError("bad_option", "this machine has not kept the request " + id +
                                                    ": name its workspace with -w WORKSPACE");
  }
  if (!invocation.ChannelTo("billing")) return;
  pb::GetCreditGrantRequest request;
  request.set_name("workspaces/" + workspace + "/creditGrants/" + id);
  pb::CreditGrant grant;
  const grpc::Status status = invocation.Try("AdjustmentService.GetCreditGrant", request, grant);
  const bool unknown = status.error_code() == grpc::StatusCode::NOT_FOUND;
  if (!status.ok() && !unknown) return invocation.ReportFailure("billing", status);
  Table table({{"request_id", "Request"},
               {"workspace_id", "Workspace"},
               {"state", "State"},
               {"amount_usd", "Amount"},
               {"paid", "Paid"},
               {"reason", "Reason"},
               {"actor", "Actor"},
               {"created_at", "Executed (UTC)"}});
  if (unknown) {
    table.Add({Text(id), Text(workspace), Text("not_executed"), None("-"), None("-"), None("-"),
               None("-"), None("-")});
    invocation.ShowRecord(table);
    if (!invocation.options().json) {
      std::puts("\nIt is safe to repeat the command with this --request-id.");
    }
    return;
  }
  invocation.journal().Remove(id);
  table.Add({Text(id), Text(workspace), Text("executed"), Usd(grant.amount_usd()),
             Bool(grant.paid()), Text(grant.reason()), Text(grant.actor()),
             Time(grant.create_time())});
  invocation.ShowRecord(table);
}

std::optional<int64_t> Amount(const std::string& text) { return ParseDecimalUsdToNano(text); }

Command GiveCredit(const char* words, const char* help, const std::vector<Flag>& more = {}) {
  std::vector<Flag> flags = {
      ParentFlag(),
      Flag("amount", "USD, for example 5 or 0.25", "credit_grant.amount_usd")
          .Required()
          .As(Amount, "\"{}\" is not an amount in USD such as 5 or 0.25, with at most 9 decimals"),
      Flag("--reason", "Reason, for the ledger", "credit_grant.reason")};
  flags.insert(flags.end(), more.begin(), more.end());
  return Command(words, help, "AdjustmentService.CreateCreditGrant", flags).Then(ShowBalance);
}

// `credit add --granted` is the same request as `credit grant`, also for the journal.
bool ReadGranted(Invocation&, Arguments& arguments) {
  const bool granted = arguments.Has("granted");
  arguments.Set("kind", {granted ? "grant" : "add"});
  arguments.Set("paid", {granted ? "false" : "true"});
  return true;
}

}  // namespace

std::vector<Command> CreditCommands() {
  return {
      Command("credit", "Prepaid credit"),
      GiveCredit("credit add", "Add credit that was paid for to a workspace",
                 {Flag("--granted", "Granted free of charge; spent before paid credit").Switch()})
          .Before(ReadGranted)
          .Sets("credit_grant.paid", "{paid}")
          .Money("credit {kind} {amount} {reason}"),
      GiveCredit("credit grant", "Give a workspace credit free of charge; spent before paid credit")
          .Money("credit grant {amount} {reason}"),
      Command("credit status", "Show whether a credit add or grant was executed", ShowStatus,
              {Flag("request", "Request id").Required(),
               Flag("-w,--workspace", "Workspace; default: what this machine has kept")}),
      Command("cap", "Monthly spend cap of a workspace"),
      Command("cap set", "Set or remove the cap; takes effect with the next request",
              "LedgerService.UpdateCap",
              {WorkspaceFlag(),
               Flag("amount", "USD per month, or none", "cap.cap_usd").Required().Unset("none")})
          .Sets("cap.name", "workspaces/{workspace}/cap")
          .Then(ShowBalance),
      BalanceCommand(),
  };
}

}  // namespace tollgate::cli
