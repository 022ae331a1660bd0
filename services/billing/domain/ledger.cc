// Apply: runs operations in order, checks the invariants after each, undoes what breaks one.
#include "services/billing/domain/ledger.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/workspace_id.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/dead_letter.h"

namespace tollgate::billing {
namespace {

template <typename T>
void SortUnique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

Balance BalanceOf(const Wallet& wallet, const Month* month, int64_t at_us) {
  Balance balance;
  balance.workspace = wallet.workspace;
  balance.paid_nano_usd = wallet.paid_nano_usd;
  balance.granted_nano_usd = wallet.granted_nano_usd;
  balance.held_nano_usd = wallet.held_nano_usd;
  balance.receivable_nano_usd = wallet.receivable_nano_usd;
  balance.frozen = wallet.frozen;
  balance.cap_nano_usd = wallet.cap_nano_usd;
  balance.open_holds = wallet.open_holds;
  balance.month = UtcMonth(at_us);
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
  // One that was refused right after is not written.
  std::erase_if(out_.new_wallets, [this](const std::string& name) {
    return !std::binary_search(out_.wallets.begin(), out_.wallets.end(), name);
  });
  SortUnique(out_.months);
  SortUnique(out_.key_months);
  SortUnique(out_.decided_commands);
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
  at_us_ = wallet_ ? LedgerTime(*wallet_, now_us_) : now_us_;
  SaveBefore(operation);
  key_hold_ = FindHold(request_id);
  // Only new names are checked: a workspace that has a wallet must always be able to settle.
  Reply reply = wallet_ != nullptr || IsWorkspaceId(workspace)
                    ? std::visit([this](const auto& op) { return Execute(op); }, operation)
                    : Refuse(Deny::kInvalid);
  if (const std::string broken = BrokenInvariant(request_id); !broken.empty()) {
    Undo(workspace, request_id);
    out_.violations.push_back("workspace " + workspace + ": " + broken);
    reply = Refuse(Deny::kInvalid);
  } else if (!request_id.empty()) {
    RecordUsageChange(request_id);
  }
  if (const auto* settle = std::get_if<Settle>(&operation); settle != nullptr && !reply.ok) {
    auto letter = DeadLetterOf(*settle, reply, FindHold(request_id), at_us_);
    // What is no name cannot be stored as one; it has no wallet either.
    if (letter && wallet_ == nullptr && !IsWorkspaceId(workspace)) letter->workspace.clear();
    if (letter) out_.dead_letters.push_back(std::move(*letter));
  }
  out_.replies.push_back(std::move(reply));
}

}  // namespace tollgate::billing
