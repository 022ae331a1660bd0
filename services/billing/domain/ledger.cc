// Apply: runs operations in order, checks the invariants after each, and undoes an operation that
// breaks one.
#include "services/billing/domain/ledger.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/sort_unique.h"
#include "common/base/workspace_id.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/dead_letter.h"

namespace tollgate::billing {

Balance BalanceOf(const Wallet& wallet, const Month* month, int64_t now_us) {
  Balance balance;
  balance.workspace = wallet.workspace;
  balance.paid_nano_usd = wallet.paid_nano_usd;
  balance.granted_nano_usd = wallet.granted_nano_usd;
  balance.held_nano_usd = wallet.held_nano_usd;
  balance.receivable_nano_usd = wallet.receivable_nano_usd;
  balance.frozen = wallet.frozen;
  balance.cap_nano_usd = wallet.cap_nano_usd;
  balance.open_holds = wallet.open_holds - wallet.leases;
  balance.month = UtcMonth(now_us);
  if (month != nullptr) {
    balance.month_spent_nano_usd = month->spent_nano_usd;
    balance.month_held_nano_usd = month->held_nano_usd;
  }
  return balance;
}

Applied Apply(State& state, std::span<const Operation> operations, int64_t now_us,
              const Policy& policy) {
  Batch batch(state, now_us, policy);
  for (const Operation& operation : operations) batch.Run(operation);
  return batch.Finish();
}

Applied Batch::Finish() {
  SortUnique(out_.wallets);
  SortUnique(out_.new_wallets);
  // A new wallet whose operation was refused afterwards is not written.
  std::erase_if(out_.new_wallets, [this](const std::string& name) {
    return !std::binary_search(out_.wallets.begin(), out_.wallets.end(), name);
  });
  SortUnique(out_.months);
  SortUnique(out_.key_months);
  SortUnique(out_.decided_commands);
  SortUnique(out_.idempotency_keys);
  SortUnique(out_.leases);
  SortUnique(out_.new_holds);
  SortUnique(out_.changed_holds);
  SortUnique(out_.recorded_holds);
  std::erase_if(out_.changed_holds, [this](const Id& id) {
    return std::binary_search(out_.new_holds.begin(), out_.new_holds.end(), id);
  });
  return std::move(out_);
}

void Batch::Run(const Operation& operation) {
  const std::string& workspace = WorkspaceOf(operation);
  const Id request_id = RequestIdOf(operation);
  const auto found = state_.wallets.find(workspace);
  wallet_ = found == state_.wallets.end() ? nullptr : &found->second;
  at_us_ = wallet_ ? EntryTime(*wallet_, now_us_) : now_us_;
  SaveBefore(operation);
  key_hold_ = FindHold(request_id);
  Reply reply;
  if (const auto broken = state_.broken.find(workspace); broken != state_.broken.end()) {
    reply = RefuseBroken(operation, broken->second);
  } else if (LacksItsWallet(operation)) {
    reply = Refuse(Deny::kUnavailable);
  } else if (wallet_ != nullptr || IsWorkspaceId(workspace) ||
             std::holds_alternative<ResolveDeadLetter>(operation)) {
    reply = std::visit([this](const auto& op) { return Admitted(op); }, operation);
  } else {
    // Only workspaces without a wallet need a valid name: a workspace that has a wallet must always
    // be able to settle. A dead letter whose settle names no workspace must be resolvable.
    reply = Refuse(Deny::kInvalid);
  }
  if (const std::string broken = BrokenInvariant(request_id); !broken.empty()) {
    Undo(workspace, request_id);
    reply = RefuseBroken(operation, broken);
  } else if (!request_id.empty()) {
    RecordUsageChange(request_id);
  }
  // kUnavailable is not a refusal: the sender keeps the settle.
  if (const auto* settle = std::get_if<Settle>(&operation);
      settle != nullptr && !reply.ok && reply.denied_by != Deny::kUnavailable) {
    auto letter = DeadLetterOf(*settle, reply, FindHold(request_id), at_us_);
    // An invalid workspace name cannot be stored, and has no wallet.
    if (letter && wallet_ == nullptr && !IsWorkspaceId(workspace)) letter->workspace.clear();
    if (letter) out_.dead_letters.push_back(std::move(*letter));
  }
  out_.replies.push_back(std::move(reply));
}

// Another replica created the wallet and stored this command or hold between two reads of this
// batch. Without the wallet nothing can be decided.
bool Batch::LacksItsWallet(const Operation& operation) const {
  if (wallet_ != nullptr) return false;
  const std::string_view command = CommandIdOf(operation);
  if (!command.empty() && state_.commands.contains(CommandKey(WorkspaceOf(operation), command))) {
    return true;
  }
  const auto hold = state_.holds.find(RequestIdOf(operation));
  return hold != state_.holds.end() && !hold->second.tombstone() &&
         hold->second.workspace == WorkspaceOf(operation);
}

// Wallet and entries of the workspace contradict each other: freezes the workspace.
Reply Batch::RefuseBroken(const Operation& operation, const std::string& why) {
  const std::string& workspace = WorkspaceOf(operation);
  const auto found = state_.wallets.find(workspace);
  const bool is_known =
      found != state_.wallets.end() && found->second.frozen == Freeze::kFailedCheck;
  if (found != state_.wallets.end() && !is_known) {
    found->second.frozen = Freeze::kFailedCheck;
    out_.wallets.push_back(workspace);
    out_.frozen.push_back(workspace);
  }
  // Reported once, since its settlements are sent again and again.
  if (!is_known) out_.violations.push_back("workspace " + workspace + ": " + why);
  // Settlements get a retryable refusal: the sender keeps them until the ledger is repaired.
  return Refuse(IsAuthorize(operation) ? Deny::kFrozenByCheck : Deny::kUnavailable);
}

}  // namespace tollgate::billing
