// What must hold after every operation (docs/design/ledger.md 9).
#include "services/billing/domain/batch.h"

namespace tollgate::billing {

std::string Batch::BrokenInvariant(const Id& request_id) const {
  if (wallet_) {
    if (wallet_->paid_nano_usd < 0 || wallet_->granted_nano_usd < 0) return "negative credit";
    if (wallet_->receivable_nano_usd < 0) return "negative receivable";
    if (wallet_->held_nano_usd < 0 || wallet_->held_nano_usd > wallet_->posted_nano_usd()) {
      return "held outside posted credit";
    }
    const int64_t open_holds = wallet_->open_holds - wallet_->leases;
    const int64_t of_holds = wallet_->held_nano_usd - wallet_->leased_nano_usd;
    if (open_holds < 0 || of_holds < 0 || (open_holds == 0 && of_holds != 0)) {
      return "open holds do not match the held amount";
    }
    if (wallet_->leases < 0 || wallet_->leased_nano_usd < wallet_->leases ||
        (wallet_->leases == 0 && wallet_->leased_nano_usd != 0)) {
      return "leases do not match what they reserve";
    }
    if (std::string broken = BrokenLeaseInvariant(); !broken.empty()) return broken;
    for (const auto& [key, before] : before_.months) {
      const Month& month = state_.months.at(key);
      if (month.held_nano_usd < 0 || month.spent_nano_usd < 0) return "negative month";
    }
    for (const auto& [key, before] : before_.key_months) {
      const auto found = state_.key_months.find(key);
      if (found == state_.key_months.end()) continue;
      if (found->second.held_nano_usd < 0) return "negative month of a key";
    }
  }
  if (const auto found = state_.holds.find(request_id);
      found != state_.holds.end() && !request_id.empty()) {
    if (std::string broken = BrokenHoldInvariant(found->second); !broken.empty()) return broken;
  }
  return BrokenEntryInvariant();
}

std::string Batch::BrokenHoldInvariant(const Hold& hold) const {
  if (hold.charged_nano_usd < 0 || hold.overrun_nano_usd < 0 || hold.charged_granted_nano_usd < 0 ||
      hold.charged_granted_nano_usd > hold.charged_nano_usd) {
    return "negative charge";
  }
  if (hold.state != HoldState::kCorrected && hold.charged_nano_usd > hold.authorized_nano_usd) {
    return "charged above the authorized amount";
  }
  if (!hold.candidates.empty()) {
    const auto index = static_cast<size_t>(hold.candidate);
    if (index >= hold.candidates.size() || hold.Current() != hold.candidates[index]) {
      return "the price is of none of the models of the request";
    }
  }
  if (hold.state == HoldState::kOpen) {
    const bool reopened = before_.hold && before_.hold->state != HoldState::kOpen;
    return reopened ? "a closed hold was opened again" : "";
  }
  const Int128 remainder =
      hold.CostPicoUsd() - Int128{kPicoPerNano} * (hold.charged_nano_usd + hold.overrun_nano_usd);
  if (remainder < 0 || remainder >= kPicoPerNano) {
    return "charge does not match the price of the usage";
  }
  return "";
}

std::string Batch::BrokenLeaseInvariant() const {
  if (!before_.lease_name) return "";
  int64_t reserved = before_.lease ? -before_.lease->reserved_nano_usd() : 0;
  if (const auto found = state_.leases.find(LeaseKey(*before_.lease_name));
      found != state_.leases.end()) {
    const Lease& lease = found->second;
    if (lease.used_nano_usd < 0 || lease.reserved_nano_usd() < 0) return "a lease is overdrawn";
    reserved += lease.reserved_nano_usd();
  }
  int64_t entered = 0;
  for (size_t i = before_.entries; i < out_.entries.size(); ++i) {
    const Entry& entry = out_.entries[i];
    if (entry.kind == EntryKind::kLeaseGrant) entered += entry.amount_nano_usd;
    if (entry.kind == EntryKind::kLeaseReturn) entered -= entry.amount_nano_usd;
  }
  if (reserved != entered ||
      wallet_->leased_nano_usd != before_.wallet->leased_nano_usd + entered) {
    return "a lease changed without entries";
  }
  return "";
}

// Double entry: each balance changed by the sum of its entries.
std::string Batch::BrokenEntryInvariant() const {
  int64_t paid = 0;
  int64_t granted = 0;
  int64_t held = 0;
  int64_t receivable = 0;
  for (size_t i = before_.entries; i < out_.entries.size(); ++i) {
    const Entry& entry = out_.entries[i];
    if (entry.amount_nano_usd < 0) return "negative entry";
    const auto net = [&entry](Account account) {
      return (entry.credit == account ? entry.amount_nano_usd : 0) -
             (entry.debit == account ? entry.amount_nano_usd : 0);
    };
    paid += net(Account::kPaid);
    granted += net(Account::kGranted);
    held += net(Account::kHeld);
    receivable -= net(Account::kReceivable);
    if (net(Account::kFree) != -net(Account::kHeld)) return "control accounts out of balance";
  }
  const Wallet none;
  const Wallet& was = before_.wallet ? *before_.wallet : none;
  const Wallet& is = wallet_ ? *wallet_ : none;
  if (is.paid_nano_usd - was.paid_nano_usd != paid ||
      is.granted_nano_usd - was.granted_nano_usd != granted ||
      is.held_nano_usd - was.held_nano_usd != held ||
      is.receivable_nano_usd - was.receivable_nano_usd != receivable) {
    return "balances changed without entries";
  }
  return "";
}

}  // namespace tollgate::billing
