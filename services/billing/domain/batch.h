// One run of Apply. Internal to this folder. Each operation is in the file of its name
// (authorize.cc, extend.cc, settle.cc, void.cc, expire.cc, commands.cc). Attempts and refusals are
// in attempt.cc, idempotency keys in idempotency.cc, leases in lease.cc, requests admitted by
// routers in admission.cc, shared code in batch.cc, the invariants in invariants.cc.
#pragma once

#include <string>
#include <utility>

#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

class Batch {
 public:
  Batch(State& state, int64_t now_us, const Policy& policy)
      : state_(state), now_us_(now_us), policy_(policy) {}

  void Run(const Operation& operation);
  Applied Finish();

 private:
  // Rows that an operation may change, as they were before it. Used to undo an operation that
  // breaks an invariant.
  struct Before {
    std::optional<Wallet> wallet;
    std::optional<Hold> hold;
    std::unordered_map<std::string, std::optional<Month>> months;
    std::unordered_map<std::string, std::optional<KeyMonth>> key_months;
    std::optional<Command> command;
    std::optional<DeadLetter> dead_letter;
    std::unordered_map<std::string, std::optional<IdempotencyKey>> idempotency_keys;
    std::optional<LeaseName> lease_name;  // an operation changes at most one
    std::optional<Lease> lease;           // empty: the lease did not exist
    size_t leases = 0;
    size_t idempotency = 0;
    size_t entries = 0;
    size_t wallets = 0;
    size_t new_wallets = 0;
    size_t month_keys = 0;
    size_t key_month_keys = 0;
    size_t new_holds = 0;
    size_t changed_holds = 0;
    size_t recorded = 0;
    size_t commands = 0;
    size_t decided = 0;
    size_t resolved = 0;
    size_t audit_notes = 0;
  };

  Reply Execute(const Authorize& authorize);  // authorize.cc
  // Whether a request with this id may begin.
  bool IsTimely(const Id& request_id) const;
  // Handles a further authorize of a request that has a hold. granted: the reply without its
  // amount.
  Reply Repeat(const Authorize& authorize, Hold& hold, Reply granted);
  Reply Execute(const Extend& extend);              // extend.cc
  Reply Execute(const Heartbeat& heartbeat);        // extend.cc
  Reply Execute(const Settle& settle);              // settle.cc
  Reply Execute(const Void& op);                    // void.cc
  Reply Execute(const Expire& expire);              // expire.cc
  Reply Execute(const AddCredit& command);          // commands.cc
  Reply Execute(const SetCap& command);             // commands.cc
  Reply Execute(const Correct& command);            // corrections.cc
  Reply Execute(const Decide& decide);              // corrections.cc
  Reply Execute(const ResolveDeadLetter& resolve);  // dead_letter.cc
  Reply Retry(const ResolveDeadLetter& resolve, DeadLetter& letter);
  Reply Execute(const RepairClock& command);  // commands.cc
  Reply Execute(const OpenWallet& command);   // commands.cc
  Reply Execute(const TakeLease& take);       // lease.cc
  Reply Execute(const ExpireLease& expire);   // lease.cc

  // Executes the operation, after its admission if it carries one.
  template <typename Op>
  Reply Admitted(const Op& op) {
    if constexpr (requires { op.admission; }) {
      if (op.admission != nullptr) {
        if (Reply refused = Admit(*op.admission, op.request_id, op.workspace); !refused.ok) {
          return refused;
        }
      }
    }
    return Execute(op);
  }
  // admission.cc. Opens the hold of an admitted request, or takes it over from an earlier attempt.
  // The reply is ok if the hold exists afterwards.
  Reply Admit(const Admission& admission, const Id& request_id, const std::string& workspace);
  Reply AdmitAgain(const Admission& admission, Hold& hold);
  // Month that an admitted request counts towards.
  int32_t AdmittedMonth(const Admission& admission) const;
  int64_t AdmittedUs(const Admission& admission, int32_t month) const;
  // Moves the request's amount out of its lease, from held to free. Returns that amount.
  int64_t TakeFromLease(const Admission& admission);
  // lease.cc
  Reply Enlarge(const TakeLease& take);
  Reply GiveBack(const TakeLease& take);
  // Row of a lease of wallet_, or null. Saves the row in before_, since callers change it.
  Lease* FindLease(const LeaseName& name);
  // Sets both amounts and updates the lease totals of the wallet.
  void SetLease(Lease& lease, int64_t granted_nano_usd, int64_t used_nano_usd);
  // Moves the unused rest back to free.
  void ReturnLease(Lease& lease, int64_t used_nano_usd, const std::string& memo);
  void ReleaseSettled(Lease& lease, int64_t settled_nano_usd);
  void RemoveLease(const LeaseName& name);

  // idempotency.cc. Returns kNone if the request may run.
  Deny FindIdempotencyConflict(const Authorize& authorize);
  void TakeIdempotencyKey(const Authorize& authorize);
  // Whether another request with the same Idempotency-Key has taken this hold's place.
  bool IsReplaced(const Hold& hold) const;
  // extend.cc. Extend and heartbeat both report the usage so far; a heartbeat asks for no new
  // total.
  template <typename Op>
  Reply ReportProgress(const Op& op, std::optional<int64_t> authorized_total_nano_usd);
  // Postpones the expiry of an open hold.
  void KeepAlive(Hold& hold);
  // attempt.cc
  void BeginAttempt(Hold& hold, int32_t attempt);
  Reply UndoCharge(const Void& op, Hold& hold);
  // settle.cc
  Reply SettleOpen(const Settle& settle, Hold& hold);
  Reply SettleLate(const Settle& settle, Hold& hold);
  // What a settle that comes too late would have charged, at the price of its hold or admission. 0
  // if something else forbids it, or if the archive may have its hold: it may have been charged.
  int64_t OwedNanoUsd(const Settle& settle, int32_t archived_month);
  // Charges the cost of the hold's usage and releases the rest.
  void Charge(Hold& hold, EntryKind terminal);
  // Moves the amount from the posted credit to revenue, granted credit first.
  void Capture(Hold& hold, EntryKind kind, int64_t amount_nano_usd, int32_t month);
  // Refunds a part of the charge of a closed hold: paid credit first, since it was charged last.
  void GiveBack(Hold& hold, int64_t amount_nano_usd);
  void GiveBack(Hold& hold, int64_t amount_nano_usd, int32_t month);
  void SetOverrun(Hold& hold, int64_t overrun_nano_usd, int32_t month);
  // Marks a closed hold as corrected.
  void MarkCorrected(Hold& hold);

  // corrections.cc. Posts the entries of a correction, or returns why that is not possible.
  Deny PostCorrection(const Command& command);
  // Adds an audit note of a command that has changed something. It has the time of the decision.
  template <typename Op>
  void Audit(const Op& op, std::string action, std::string subject, std::string detail,
             const std::string& call_id) {
    out_.audit_notes.push_back({.at_us = now_us_,
                                .actor = op.actor,
                                .address = op.address,
                                .action = std::move(action),
                                .workspace = op.workspace,
                                .subject = std::move(subject),
                                .detail = std::move(detail),
                                .call_id = call_id});
  }
  // Posts an entry that moves no money.
  void PostNote(EntryKind kind, const Command& command, const std::string& memo);
  // Pays the receivable from paid credit as soon as paid credit is available. Called wherever
  // available credit may have risen. reference: the command, or the request in hexadecimal digits.
  void PayReceivable(const std::string& reference);
  // Unfreezes a disputed workspace whose receivable is zero.
  void EndDispute(const std::string& reference);

  // Raises an open hold by up to this amount, as far as credit and cap allow.
  void Raise(Hold& hold, int64_t amount_nano_usd);
  // Releases the whole authorized amount.
  void Release(Hold& hold, EntryKind terminal, const std::string& memo);
  void Close(Hold& hold, HoldState state);

  // Writes the entry and moves its amount. Balances change only here.
  void Post(EntryKind kind, Account debit, Account credit, int64_t amount_nano_usd, int32_t month,
            const std::string& request, const std::string& memo = "",
            const std::string& detail = "");
  void Move(Account account, int64_t amount_nano_usd, Month& month);
  // Counts the entry towards the key of key_hold_.
  void MoveKeyMonth(const Entry& entry);
  KeyMonth* FindKeyMonth(const std::string& key_id, int32_t month);  // a row of wallet_
  // Spend and holds of all keys that share the quota, in a month.
  KeyMonth UseOfQuota(const Hold& hold, int32_t month);
  // Amount that the key's quota leaves for this hold in a month.
  int64_t QuotaHeadroom(const Hold& hold, int32_t month);
  // Amount that the cap leaves for new holds in this month. No cap: no limit.
  int64_t CapHeadroom(const std::optional<int64_t>& cap_nano_usd, int32_t month);
  // The higher of the cap at admission and the current cap (decision 6).
  static std::optional<int64_t> EffectiveCap(const Wallet& wallet, const Hold& hold);

  Wallet& FindOrCreateWallet(const std::string& workspace);
  Month& FindOrCreateMonth(int32_t month);  // a row of wallet_
  Hold* FindHold(const Id& id);
  void MarkChanged(const Hold& hold);
  Balance CurrentBalance();  // balance of wallet_

  void SaveBefore(const Operation& operation);
  // Records what the operation changed in the roll-ups.
  void RecordUsageChange(const Id& request_id);
  // ledger.cc
  bool LacksItsWallet(const Operation& operation) const;
  Reply RefuseBroken(const Operation& operation, const std::string& why);
  // Returns the invariant that the operation has broken, or an empty string.
  std::string BrokenInvariant(const Id& request_id) const;
  std::string BrokenHoldInvariant(const Hold& hold) const;
  std::string BrokenEntryInvariant() const;
  std::string BrokenLeaseInvariant() const;
  void Undo(const std::string& workspace, const Id& request_id);

  State& state_;
  const int64_t now_us_;
  const Policy& policy_;
  Applied out_;
  // State of the current operation.
  Before before_;
  Wallet* wallet_ = nullptr;        // null: the workspace has no wallet
  int64_t at_us_ = 0;               // time of its entries; decisions use now_us_
  const Hold* key_hold_ = nullptr;  // hold of the operation, or null
};

// How far ahead of the ledger's clock a request id may be.
inline constexpr int64_t kMaxClockSkewUs = 24LL * 3600 * 1'000'000;

// authorize.cc: shared by Authorize and admissions.
bool IsValid(const Authorize& authorize);
bool SameBody(const Hold& hold, const Authorize& authorize);
Hold MakeHold(const Authorize& authorize);

// admission.cc
bool IsValid(const Admission& admission);

bool IsValid(const Settle& settle);
// Whether the settle charges nothing: a request without output is free.
bool IsFree(Outcome outcome, const Usage& usage);
// A reply with the current amounts of the hold.
Reply ReplyFor(const Hold& hold, Deny denied_by = Deny::kNone);
// False for negative token counts and for counts beyond any engine.
bool IsTokenCount(int64_t tokens);
bool IsValidUsage(const Usage& usage);
// Limits each part to its total, whatever an engine reports.
Usage Clamped(Usage usage);

}  // namespace tollgate::billing
