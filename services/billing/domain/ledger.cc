#include "services/billing/domain/ledger.h"

#include <algorithm>
#include <limits>

#include "common/base/clock.h"
#include "services/billing/domain/batch.h"
#include "services/billing/domain/chain.h"

namespace tollgate::billing {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
// Beyond any request and any price (0.1 USD a token), and small enough that every cost in nano-USD
// fits 64 bits.
constexpr int64_t kMaxTokens = int64_t{1} << 33;
constexpr int64_t kMaxRate = 100'000'000'000;
// A thousand million dollars: sums of posted credit stay far below 64 bits.
constexpr int64_t kMaxCredit = 1'000'000'000 * kNanoPerUsd;
constexpr int64_t kFutureUs = 24LL * 3600 * 1'000'000;

bool IsName(std::string_view text) {
  if (text.empty() || text.size() > 128) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
           c == '_' || c == '-';
  });
}

bool SameBody(const Hold& hold, const Op& op) {
  return hold.workspace == op.workspace && hold.key_id == op.key_id && hold.model == op.model &&
         hold.rates == op.rates && hold.price_version == op.price_version &&
         hold.prompt_bound == op.prompt_bound && hold.output_bound == op.output_bound;
}

bool SensibleAuthorize(const Op& op) {
  const auto tokens = [](int64_t n) { return n >= 0 && n <= kMaxTokens; };
  const auto rate = [](int64_t n) { return n >= 0 && n <= kMaxRate; };
  return tokens(op.prompt_bound) && tokens(op.output_bound) && rate(op.rates.input_pico_usd) &&
         rate(op.rates.output_pico_usd) && op.model.size() <= 256 && op.key_id.size() <= 128;
}

// A row's key once in the list of changed rows.
template <typename T>
void SortUnique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

bool Sane(const Usage& usage) {
  const auto tokens = [](int64_t n) { return n >= 0 && n <= kMaxTokens; };
  return tokens(usage.prompt) && tokens(usage.completion) && tokens(usage.cached) &&
         tokens(usage.cache_write) && tokens(usage.reasoning);
}

Balance BalanceOf(const Wallet& wallet, const Month* month, int64_t at_us) {
  Balance balance;
  balance.workspace = wallet.workspace;
  balance.paid = wallet.paid;
  balance.granted = wallet.granted;
  balance.held = wallet.held;
  balance.cap = wallet.cap;
  balance.open_holds = wallet.open_holds;
  balance.month = UtcMonth(at_us);
  if (month != nullptr) {
    balance.month_spent = month->spent;
    balance.month_held = month->held;
  }
  return balance;
}

Applied Apply(State& state, std::span<const Op> ops, int64_t now_us, const Policy& policy) {
  Batch batch(state, now_us, policy);
  for (const Op& op : ops) batch.Run(op);
  return batch.Finish();
}

Applied Batch::Finish() {
  SortUnique(out_.wallets);
  SortUnique(out_.months);
  SortUnique(out_.new_holds);
  SortUnique(out_.changed_holds);
  SortUnique(out_.recorded_holds);
  std::erase_if(out_.changed_holds, [this](const Id& id) {
    return std::binary_search(out_.new_holds.begin(), out_.new_holds.end(), id);
  });
  return std::move(out_);
}

void Batch::Run(const Op& op) {
  const auto found = state_.wallets.find(op.workspace);
  wallet_ = found == state_.wallets.end() ? nullptr : &found->second;
  at_us_ = wallet_ ? LedgerTime(*wallet_, now_us_) : now_us_;
  before_ = {};
  if (wallet_) before_.wallet = *wallet_;
  if (const Hold* hold = FindHold(op.id)) before_.hold = *hold;
  before_.entries = out_.entries.size();
  before_.wallets = out_.wallets.size();
  before_.month_keys = out_.months.size();
  before_.new_holds = out_.new_holds.size();
  before_.changed_holds = out_.changed_holds.size();
  before_.recorded = out_.recorded_holds.size();
  before_.commands = out_.commands.size();

  Reply reply = IsName(op.workspace) ? Dispatch(op) : Refuse(Deny::kInvalid);
  std::string broken;
  Check(op, broken);
  if (!broken.empty()) {
    Undo(op, before_);
    out_.violations.push_back("workspace " + op.workspace + ": " + broken);
    reply = Refuse(Deny::kInvalid);
  }
  out_.replies.push_back(std::move(reply));
}

Reply Batch::Dispatch(const Op& op) {
  switch (op.kind) {
    case OpKind::kAuthorize:
      return Authorize(op);
    case OpKind::kExtend:
    case OpKind::kHeartbeat:
      return Progress(op);
    case OpKind::kSettle:
      return Settle(op);
    case OpKind::kVoid:
      return Void(op);
    case OpKind::kExpire:
      return Expire(op);
    case OpKind::kAddCredit:
      return AddCredit(op);
    case OpKind::kSetCap:
      return SetCap(op);
  }
  return Refuse(Deny::kInvalid);
}

Reply Batch::Authorize(const Op& op) {
  const int64_t made_us = op.id.unix_ms() * 1000;
  if (op.id.empty() || !SensibleAuthorize(op) || at_us_ - made_us > policy_.id_age_us ||
      made_us - at_us_ > kFutureUs) {
    return Refuse(Deny::kInvalid);
  }
  Reply granted;
  granted.ok = true;
  granted.slice = HoldNano(tollgate::CostPico(op.rates, 0, policy_.slice_tokens));
  if (const Hold* hold = FindHold(op.id)) {
    if (hold->tombstone()) {
      return Refuse(hold->workspace == op.workspace ? Deny::kClosed : Deny::kIdReuse);
    }
    if (!SameBody(*hold, op)) return Refuse(Deny::kIdReuse);
    if (hold->state != HoldState::kOpen) return Refuse(Deny::kClosed);
    granted.authorized = hold->first_authorized;
    return granted;
  }
  if (!wallet_) return Refuse(Deny::kNoCredit);
  if (wallet_->frozen) return Refuse(Deny::kFrozen);

  const int64_t least = HoldNano(
      tollgate::CostPico(op.rates, op.prompt_bound, std::min<int64_t>(op.output_bound, 1)));
  const int64_t wanted = HoldNano(tollgate::CostPico(
      op.rates, op.prompt_bound, std::min(op.output_bound, policy_.slice_tokens)));
  const int32_t month = UtcMonth(at_us_);
  if (wallet_->posted() <= 0 || wallet_->posted() < least) return Refuse(Deny::kNoCredit);
  const int64_t left_of_cap = wallet_->cap ? *wallet_->cap - MonthOf(month).spent : kMax;
  if (left_of_cap <= 0 || left_of_cap < least) return Refuse(Deny::kCap);
  const int64_t fits = std::min({wanted, wallet_->available(), Room(wallet_->cap, month)});
  if (fits < least) {
    if (policy_.held_is_no_credit) return Refuse(Deny::kNoCredit);
    Reply held = Refuse(Deny::kHeld);
    held.retry_after_ms = policy_.held_retry_ms;
    return held;
  }

  Hold hold;
  hold.id = op.id;
  hold.workspace = op.workspace;
  hold.key_id = op.key_id;
  hold.model = op.model;
  hold.rates = op.rates;
  hold.price_version = op.price_version;
  hold.prompt_bound = op.prompt_bound;
  hold.output_bound = op.output_bound;
  hold.month = month;
  hold.cap = wallet_->cap;
  hold.first_authorized = fits;
  hold.authorized = fits;
  hold.created_us = at_us_;
  hold.expires_us = at_us_ + policy_.hold_ttl_us;
  state_.holds.emplace(op.id, std::move(hold));
  out_.new_holds.push_back(op.id);
  ++wallet_->open_holds;
  Post(EntryKind::kHold, Account::kFree, Account::kHeld, fits, month, op.id.ToBytes());
  granted.authorized = fits;
  return granted;
}

Reply Batch::AddCredit(const Op& op) {
  if (op.command.empty() || op.command.size() > 64 || op.amount <= 0 || op.amount > kMaxCredit ||
      op.reason.size() > 512 || op.actor.size() > 128) {
    return Refuse(Deny::kInvalid);
  }
  Reply reply;
  reply.ok = true;
  const std::string key = CommandKey(op.workspace, op.command);
  if (const auto known = state_.commands.find(key); known != state_.commands.end()) {
    const Command& earlier = known->second;
    if (earlier.kind != op.kind || earlier.amount != op.amount || earlier.granted != op.granted) {
      return Refuse(Deny::kIdReuse);
    }
  } else {
    Wallet& wallet = WalletOf(op.workspace);
    if (wallet.posted() > kMaxCredit - op.amount) return Refuse(Deny::kInvalid);
    state_.commands.emplace(key, Command{op.workspace, op.command, op.kind, op.amount, op.granted,
                                         std::nullopt, at_us_});
    out_.commands.push_back(key);
    const std::string memo = op.actor + ": " + op.reason;
    if (op.granted) {
      Post(EntryKind::kGrant, Account::kPromo, Account::kGranted, op.amount, UtcMonth(at_us_),
           op.command, memo);
    } else {
      Post(EntryKind::kTopup, Account::kFunding, Account::kPaid, op.amount, UtcMonth(at_us_),
           op.command, memo);
    }
  }
  reply.balance = BalanceOf(*wallet_, &MonthOf(UtcMonth(at_us_)), at_us_);
  return reply;
}

Reply Batch::SetCap(const Op& op) {
  if (op.command.empty() || op.command.size() > 64 || op.cap.value_or(0) < 0 ||
      op.actor.size() > 128) {
    return Refuse(Deny::kInvalid);
  }
  Reply reply;
  reply.ok = true;
  const std::string key = CommandKey(op.workspace, op.command);
  if (const auto known = state_.commands.find(key); known != state_.commands.end()) {
    if (known->second.kind != op.kind || known->second.cap != op.cap) return Refuse(Deny::kIdReuse);
  } else {
    WalletOf(op.workspace).cap = op.cap;
    state_.commands.emplace(key,
                            Command{op.workspace, op.command, op.kind, 0, false, op.cap, at_us_});
    out_.commands.push_back(key);
    const std::string to = op.cap ? std::to_string(*op.cap) : "none";
    Post(EntryKind::kCapChange, Account::kControl, Account::kControl, 0, UtcMonth(at_us_),
         op.command, "cap=" + to + " " + op.actor);
  }
  reply.balance = BalanceOf(*wallet_, &MonthOf(UtcMonth(at_us_)), at_us_);
  return reply;
}

}  // namespace tollgate::billing
