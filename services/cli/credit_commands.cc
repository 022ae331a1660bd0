#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

std::string WorkspaceName(const std::string& id) { return "workspaces/" + id; }

void ShowBalance(Invocation& invocation, const std::string& workspace) {
  const auto stub = invocation.Books();
  if (!stub) return;
  pb::GetBalanceRequest request;
  request.set_name(WorkspaceName(workspace) + "/balance");
  pb::Balance balance;
  if (!invocation.Call("billing", [&](auto& context) {
        return stub->GetBalance(&context, request, &balance);
      })) {
    return;
  }
  Table table({{"workspace_id", "Workspace"},
               {"available_usd", "Available"},
               {"paid_usd", "Paid credit"},
               {"granted_usd", "Granted credit"},
               {"held_usd", "Held by running requests"},
               {"receivable_usd", "Owed after chargebacks"},
               {"month", "Month"},
               {"month_spent_usd", "Spent this month"},
               {"month_held_usd", "Held this month"},
               {"cap_usd", "Cap a month"},
               {"open_holds", "Open holds"},
               {"frozen", "Frozen"},
               {"wallet_open", "Wallet open"}});
  const std::string frozen =
      balance.frozen() == 0 ? "no"
                            : EnumText(pb::FreezeReason_Name(balance.frozen()), "FREEZE_REASON_");
  table.Add({Text(workspace), Usd(balance.available_usd()), Usd(balance.paid_usd()),
             Usd(balance.granted_usd()), Usd(balance.held_usd()), Usd(balance.receivable_usd()),
             Text(balance.month()), Usd(balance.month_spent_usd()), Usd(balance.month_held_usd()),
             balance.has_cap_usd() ? Usd(balance.cap_usd()) : None("none"),
             Integer(balance.open_holds()), Text(frozen), Bool(balance.wallet_open())});
  invocation.ShowRecord(table);
}

struct CreditOptions {
  std::string workspace, amount, reason;
  bool granted = false;
};

void GiveCredit(Invocation& invocation, const CreditOptions& options) {
  if (!ParseDecimalUsdToNano(options.amount)) {
    return invocation.ReportError("bad_option", "\"" + options.amount +
                                                    "\" is not an amount in USD such as 5 or "
                                                    "0.25, with at most 9 decimals");
  }
  const auto stub = invocation.Adjustments();
  if (!stub) return;
  pb::CreateCreditGrantRequest request;
  request.set_parent(WorkspaceName(options.workspace));
  request.mutable_credit_grant()->set_amount_usd(options.amount);
  request.mutable_credit_grant()->set_paid(!options.granted);
  request.mutable_credit_grant()->set_reason(options.reason);
  pb::CreditGrant grant;
  const std::string what = std::string("credit ") + (options.granted ? "grant " : "add ") +
                           options.amount + " " + options.reason;
  if (invocation.CallMoney(options.workspace, what, [&](auto& context, const std::string& id) {
        request.set_request_id(id);
        return stub->CreateCreditGrant(&context, request, &grant);
      })) {
    ShowBalance(invocation, options.workspace);
  }
}

void AddCreditVerb(CLI::App& group, Invocation& invocation, const char* verb, const char* help,
                   bool granted) {
  CLI::App& command = *group.add_subcommand(verb, help);
  auto options = std::make_shared<CreditOptions>();
  options->granted = granted;
  command.add_option("-w,--workspace", options->workspace, "Workspace")->required();
  command.add_option("amount", options->amount, "USD, for example 5 or 0.25")->required();
  command.add_option("--reason", options->reason, "Reason, for the ledger");
  if (!granted) {
    command.add_flag("--granted", options->granted,
                     "Granted free of charge; spent before paid credit");
  }
  command.callback([&invocation, options] { GiveCredit(invocation, *options); });
}

void ShowStatus(Invocation& invocation, const std::string& id, std::string workspace) {
  const auto kept = invocation.journal().Find(id);
  if (workspace.empty() && kept) workspace = kept->workspace;
  if (workspace.empty()) {
    return invocation.ReportError("bad_option", "this machine has not kept the request " + id +
                                                    ": name its workspace with -w WORKSPACE");
  }
  const auto stub = invocation.Adjustments();
  if (!stub) return;
  pb::GetCreditGrantRequest request;
  request.set_name(WorkspaceName(workspace) + "/creditGrants/" + id);
  pb::CreditGrant grant;
  bool unknown = false;
  if (!invocation.Call("billing", [&](auto& context) {
        grpc::Status status = stub->GetCreditGrant(&context, request, &grant);
        unknown = status.error_code() == grpc::StatusCode::NOT_FOUND;
        return unknown ? grpc::Status::OK : status;
      })) {
    return;
  }
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

void AddCredit(CLI::App& app, Invocation& invocation) {
  CLI::App& group = *app.add_subcommand("credit", "Prepaid credit");
  group.require_subcommand(1);
  AddCreditVerb(group, invocation, "add", "Add credit that was paid for to a workspace", false);
  AddCreditVerb(group, invocation, "grant",
                "Give a workspace credit free of charge; spent before paid credit", true);
  CLI::App& status =
      *group.add_subcommand("status", "Show whether a credit add or grant was executed");
  auto id = std::make_shared<std::string>();
  auto workspace = std::make_shared<std::string>();
  status.add_option("request", *id, "Request id")->required();
  status.add_option("-w,--workspace", *workspace, "Workspace; default: what this machine has kept");
  status.callback([&invocation, id, workspace] { ShowStatus(invocation, *id, *workspace); });
}

void AddCap(CLI::App& app, Invocation& invocation) {
  CLI::App& group = *app.add_subcommand("cap", "Monthly spend cap of a workspace");
  group.require_subcommand(1);
  CLI::App& set =
      *group.add_subcommand("set", "Set or remove the cap; takes effect with the next request");
  auto workspace = std::make_shared<std::string>();
  auto amount = std::make_shared<std::string>();
  set.add_option("-w,--workspace", *workspace, "Workspace")->required();
  set.add_option("amount", *amount, "USD per month, or none")->required();
  set.callback([&invocation, workspace, amount] {
    pb::UpdateCapRequest request;
    if (*amount != "none") request.mutable_cap()->set_cap_usd(*amount);
    request.mutable_cap()->set_name(WorkspaceName(*workspace) + "/cap");
    request.set_request_id(invocation.RequestId());
    const auto stub = invocation.Books();
    if (!stub) return;
    pb::Cap cap;
    if (invocation.Call("billing",
                        [&](auto& context) { return stub->UpdateCap(&context, request, &cap); })) {
      ShowBalance(invocation, *workspace);
    }
  });
}

void AddBalance(CLI::App& app, Invocation& invocation) {
  CLI::App& command = *app.add_subcommand("balance", "Credit, holds and spending of a workspace");
  auto workspace = std::make_shared<std::string>();
  command.add_option("workspace,-w,--workspace", *workspace, "Workspace")->required();
  command.callback([&invocation, workspace] { ShowBalance(invocation, *workspace); });
}

}  // namespace

void AddCreditCommands(CLI::App& app, Invocation& invocation) {
  AddCredit(app, invocation);
  AddCap(app, invocation);
  AddBalance(app, invocation);
}

}  // namespace tollgate::cli
