#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

constexpr char kKindPrefix[] = "ADJUSTMENT_KIND_";
constexpr char kStatePrefix[] = "ADJUSTMENT_STATE_";

std::string Upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-') c = '_';
  }
  return text;
}

Table AdjustmentTable() {
  return Table({{"id", "ID"},
                {"kind", "KIND"},
                {"amount_usd", "AMOUNT"},
                {"state", "STATE"},
                {"actor", "ACTOR"},
                {"created_at", "CREATED (UTC)"},
                {"decided_by", "DECIDED BY"},
                {"reference", "REFERENCE"},
                {"reason", "REASON"}});
}

void AddRow(const pb::Adjustment& adjustment, Table& table) {
  table.Add({Text(LastPart(adjustment.name())),
             Text(EnumText(pb::AdjustmentKind_Name(adjustment.kind()), kKindPrefix)),
             Usd(adjustment.amount_usd()),
             Text(EnumText(pb::AdjustmentState_Name(adjustment.state()), kStatePrefix)),
             Text(adjustment.actor()), Time(adjustment.create_time()),
             adjustment.decided_by().empty() ? None("-") : Text(adjustment.decided_by()),
             Text(adjustment.reference()), Text(adjustment.reason())});
}

void Show(Invocation& invocation, const pb::Adjustment& adjustment) {
  Table table = AdjustmentTable();
  AddRow(adjustment, table);
  invocation.ShowRecord(table);
}

void AddCreateAdjustment(CLI::App& group, Invocation& invocation) {
  CLI::App& create = *group.add_subcommand(
      "create", "Correct the ledger by new entries; a large one waits for a second person");
  struct Options {
    std::string workspace, kind, amount, reason, reference;
    bool granted = false;
  };
  auto options = std::make_shared<Options>();
  create.add_option("kind", options->kind, "refund, credit, debit, chargeback or write-off")
      ->required()
      ->check(CLI::IsMember({"refund", "credit", "debit", "chargeback", "write-off"}));
  create.add_option("amount", options->amount, "USD")->required();
  create.add_option("-w,--workspace", options->workspace, "Workspace")->required();
  create.add_option("--reason", options->reason, "Reason, for the ledger")->required();
  create.add_option("--reference", options->reference, "Reference of the payment or dispute");
  create.add_flag("--granted", options->granted,
                  "For credit and debit: granted instead of paid credit");
  create.callback([&invocation, options] {
    const auto stub = invocation.Adjustments();
    if (!stub) return;
    pb::CreateAdjustmentRequest request;
    request.set_parent("workspaces/" + options->workspace);
    pb::Adjustment& wanted = *request.mutable_adjustment();
    pb::AdjustmentKind kind = pb::ADJUSTMENT_KIND_UNSPECIFIED;
    pb::AdjustmentKind_Parse(kKindPrefix + Upper(options->kind), &kind);
    wanted.set_kind(kind);
    wanted.set_amount_usd(options->amount);
    wanted.set_granted(options->granted);
    wanted.set_reason(options->reason);
    wanted.set_reference(options->reference);
    pb::Adjustment adjustment;
    const std::string what = "adjustment create " + options->kind + " " + options->amount +
                             (options->granted ? " granted " : " ") + options->reference + " " +
                             options->reason;
    if (invocation.CallMoney(options->workspace, what, [&](auto& context, const std::string& id) {
          request.set_request_id(id);
          return stub->CreateAdjustment(&context, request, &adjustment);
        })) {
      Show(invocation, adjustment);
    }
  });
}

void AddListAdjustments(CLI::App& group, Invocation& invocation) {
  CLI::App& list = *group.add_subcommand("list", "Corrections of a workspace, newest first");
  auto request = std::make_shared<pb::ListAdjustmentsRequest>();
  auto workspace = std::make_shared<std::string>();
  auto pending = std::make_shared<bool>(false);
  auto limit = std::make_shared<int>(100);
  list.add_option("-w,--workspace", *workspace, "Workspace")->required();
  list.add_flag("--pending", *pending, "Only corrections that wait for a second person");
  list.add_option("--limit", *limit, "At most this many; default 100")->check(CLI::PositiveNumber);
  list.callback([&invocation, request, workspace, pending, limit] {
    const auto stub = invocation.Adjustments();
    if (!stub) return;
    request->set_parent("workspaces/" + *workspace);
    if (*pending) request->set_filter("state = \"PENDING_APPROVAL\"");
    Table table = AdjustmentTable();
    for (int left = *limit; left > 0;) {
      request->set_page_size(std::min(left, 200));
      pb::ListAdjustmentsResponse page;
      if (!invocation.Call("billing", [&](auto& context) {
            return stub->ListAdjustments(&context, *request, &page);
          })) {
        return;
      }
      for (const pb::Adjustment& adjustment : page.adjustments()) AddRow(adjustment, table);
      left -= page.adjustments_size();
      if (page.next_page_token().empty()) break;
      request->set_page_token(page.next_page_token());
    }
    invocation.ShowList(table, "adjustments", "No corrections.");
  });
}

template <typename Request, typename Method>
void AddDecision(CLI::App& group, Invocation& invocation, const char* verb, const char* help,
                 Method method) {
  CLI::App& command = *group.add_subcommand(verb, help);
  auto request = std::make_shared<Request>();
  auto id = std::make_shared<std::string>();
  auto workspace = std::make_shared<std::string>();
  auto reason = std::make_shared<std::string>();
  command.add_option("adjustment", *id, "Its id (see: tollgate adjustment list)")->required();
  command.add_option("-w,--workspace", *workspace, "Workspace")->required();
  command.add_option("--reason", *reason, "Reason, for the ledger");
  command.callback([&invocation, request, id, workspace, reason, method] {
    const auto stub = invocation.Adjustments();
    if (!stub) return;
    request->set_name("workspaces/" + *workspace + "/adjustments/" + *id);
    request->set_reason(*reason);
    pb::Adjustment adjustment;
    if (invocation.Call("billing", [&](auto& context) {
          return (stub.get()->*method)(&context, *request, &adjustment);
        })) {
      Show(invocation, adjustment);
    }
  });
}

template <typename Request, typename Method>
void AddFreezeVerb(CLI::App& group, Invocation& invocation, const char* verb, const char* help,
                   Method method) {
  CLI::App& command = *group.add_subcommand(verb, help);
  auto request = std::make_shared<Request>();
  auto workspace = std::make_shared<std::string>();
  auto reason = std::make_shared<std::string>();
  command.add_option("workspace", *workspace, "Workspace")->required();
  command.add_option("--reason", *reason, "Reason, for the ledger")->required();
  command.callback([&invocation, request, workspace, reason, method] {
    const auto stub = invocation.Books();
    if (!stub) return;
    request->set_name("workspaces/" + *workspace);
    request->set_reason(*reason);
    request->set_request_id(invocation.RequestId());
    pb::Balance balance;
    if (!invocation.Call("billing", [&](auto& context) {
          return (stub.get()->*method)(&context, *request, &balance);
        })) {
      return;
    }
    Table table({{"workspace_id", "Workspace"}, {"frozen", "Frozen"}});
    table.Add({Text(*workspace),
               Text(balance.frozen() == 0
                        ? "no"
                        : EnumText(pb::FreezeReason_Name(balance.frozen()), "FREEZE_REASON_"))});
    invocation.ShowRecord(table);
  });
}

}  // namespace

void AddAdjustmentCommands(CLI::App& app, Invocation& invocation) {
  CLI::App& group = *app.add_subcommand("adjustment", "Corrections of the ledger");
  group.require_subcommand(1);
  AddCreateAdjustment(group, invocation);
  AddListAdjustments(group, invocation);
  using Stub = pb::AdjustmentService::Stub;
  AddDecision<pb::ApproveAdjustmentRequest>(group, invocation, "approve",
                                            "Post a correction that another operator asked for",
                                            &Stub::ApproveAdjustment);
  AddDecision<pb::RejectAdjustmentRequest>(group, invocation, "reject",
                                           "Refuse a pending correction", &Stub::RejectAdjustment);
  CLI::App& workspace = *app.get_subcommand("workspace");
  using Books = pb::LedgerService::Stub;
  AddFreezeVerb<pb::FreezeWorkspaceRequest>(
      workspace, invocation, "freeze",
      "Refuse new requests of a workspace; running ones end and are charged",
      &Books::FreezeWorkspace);
  AddFreezeVerb<pb::UnfreezeWorkspaceRequest>(workspace, invocation, "unfreeze",
                                              "Accept requests of a frozen workspace again",
                                              &Books::UnfreezeWorkspace);
}

}  // namespace tollgate::cli
