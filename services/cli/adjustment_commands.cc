#include "services/cli/commands.h"

namespace tollgate::cli {
namespace {

constexpr char kAdjustmentColumns[] =
    "id=name.id ID | kind KIND | amount_usd AMOUNT | state STATE | actor ACTOR | "
    "created_at=create_time CREATED (UTC) | decided_by?- DECIDED BY | reference REFERENCE | "
    "reason REASON";

Command DecideAdjustment(const char* words, const char* help, const char* method) {
  return Command(words, help, method,
                 {Flag("adjustment", "Its id (see: tollgate adjustment list)").Required(),
                  WorkspaceFlag(), Flag("--reason", "Reason, for the ledger", "reason")})
      .Sets("name", "workspaces/{workspace}/adjustments/{adjustment}")
      .Shows(kAdjustmentColumns);
}

Command Freeze(const char* words, const char* help, const char* method) {
  return Command(words, help, method,
                 {Flag("workspace", "Workspace").Required(),
                  Flag("--reason", "Reason, for the ledger", "reason").Required()})
      .Sets("name", "workspaces/{workspace}")
      .Shows("workspace_id=@workspace Workspace | frozen?no Frozen");
}

}  // namespace

std::vector<Command> AdjustmentCommands() {
  return {
      Command("adjustment", "Corrections of the ledger"),
      Command("adjustment create",
              "Correct the ledger by new entries; a large one waits for a second person",
              "AdjustmentService.CreateAdjustment",
              {Flag("kind", "refund, credit, debit, chargeback or write-off", "adjustment.kind")
                   .Required()
                   .OneOf({"refund", "credit", "debit", "chargeback", "write-off"}),
               Flag("amount", "USD", "adjustment.amount_usd").Required(), ParentFlag(),
               Flag("--reason", "Reason, for the ledger", "adjustment.reason").Required(),
               Flag("--reference", "Reference of the payment or dispute", "adjustment.reference"),
               Flag("--granted", "For credit and debit: granted instead of paid credit",
                    "adjustment.granted")
                   .Switch("granted")})
          .Money("adjustment create {kind} {amount}{ granted} {reference} {reason}")
          .Shows(kAdjustmentColumns),
      Command("adjustment list", "Corrections of a workspace, newest first",
              "AdjustmentService.ListAdjustments",
              {ParentFlag(),
               Flag("--pending", "Only corrections that wait for a second person")
                   .Switch("PENDING_APPROVAL")
                   .Filter("state ="),
               LimitFlag(100)})
          .Lists("adjustments", "No corrections.", kAdjustmentColumns),
      DecideAdjustment("adjustment approve", "Post a correction that another operator asked for",
                       "AdjustmentService.ApproveAdjustment"),
      DecideAdjustment("adjustment reject", "Refuse a pending correction",
                       "AdjustmentService.RejectAdjustment"),
      Freeze("workspace freeze",
             "Refuse new requests of a workspace; running ones end and are charged",
             "LedgerService.FreezeWorkspace"),
      Freeze("workspace unfreeze", "Accept requests of a frozen workspace again",
             "LedgerService.UnfreezeWorkspace"),
  };
}

}  // namespace tollgate::cli
