// One run of Apply. Internal to this folder.
#pragma once

#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

class Batch {
 public:
  Batch(State& state, int64_t now_us, const Policy& policy)
      : state_(state), now_us_(now_us), policy_(policy) {}

  void Run(const Op& op);
  Applied Finish();

 private:
  // What an operation may change, as it was before, to undo it when it breaks an invariant.
  struct Before {
    std::optional<Wallet> wallet;
    std::optional<Hold> hold;
    std::unordered_map<std::string, std::optional<Month>> months;
    size_t entries = 0;
    size_t wallets = 0;
    size_t month_keys = 0;
    size_t new_holds = 0;
    size_t changed_holds = 0;
    size_t recorded = 0;
    size_t commands = 0;
  };

  Reply Dispatch(const Op& op);
  // ledger.cc
  Reply Authorize(const Op& op);
  Reply AddCredit(const Op& op);
  Reply SetCap(const Op& op);
  // metering.cc
  Reply Progress(const Op& op);  // kExtend and kHeartbeat
  // closing.cc
  Reply Settle(const Op& op);
  Reply SettleOpen(const Op& op, Hold& hold);
  Reply SettleLate(const Op& op, Hold& hold);
  Reply Void(const Op& op);
  Reply Expire(const Op& op);
  // Takes the hold's cost from the wallet and releases the rest.
  void Charge(Hold& hold, EntryKind terminal);
  void GiveBack(Hold& hold, EntryKind terminal, const std::string& reason);
  void Close(Hold& hold, HoldState state);
  // Moves at most amount from the posted credit to revenue, granted first; how much it was.
  void Burn(Hold& hold, EntryKind kind, int64_t amount, int32_t month);

  // The only place where balances change: writes the entry and moves its amount.
  void Post(EntryKind kind, Account debit, Account credit, int64_t amount, int32_t month,
            const std::string& request, const std::string& memo = "");
  void Move(Account account, int64_t amount, Month& month);
  // What the month still lets the workspace hold. cap empty: no limit.
  int64_t Room(const std::optional<int64_t>& cap, int32_t month);
  // The hold's own cap or the one of now, whichever lets it go further (decisions.md 6).
  static std::optional<int64_t> RunningCap(const Wallet& wallet, const Hold& hold);
  // Reserves up to amount more for a running hold; how much it was.
  int64_t Grow(Hold& hold, int64_t amount);

  Wallet& WalletOf(const std::string& workspace);  // made when it is not there
  Month& MonthOf(int32_t month);                   // of wallet_; made when it is not there
  Hold* FindHold(const Id& id);
  void Changed(Hold& hold);

  void Check(const Op& op, std::string& broken) const;
  void Undo(const Op& op, Before& before);

  State& state_;
  const int64_t now_us_;
  const Policy& policy_;
  Applied out_;
  // Of the operation that runs now.
  Before before_;
  Wallet* wallet_ = nullptr;  // null: the workspace has none
  int64_t at_us_ = 0;
};

inline Reply Refuse(Deny reason) {
  Reply reply;
  reply.denied_by = reason;
  return reply;
}
// Counters that make no sense: negative, or beyond any engine.
bool Sane(const Usage& usage);

}  // namespace tollgate::billing
