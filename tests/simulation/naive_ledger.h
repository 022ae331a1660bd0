// A second implementation of the ledger's rules, as simple as possible: no stored balances (every
// sum is computed again from the requests), no entries, no batches. Written from
// docs/design/ledger.md alone; it must include nothing of services/billing except its plain values.
#pragma once

#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "services/billing/domain/operations.h"
#include "tests/simulation/naive_requests.h"

namespace tollgate::simulation {

class NaiveLedger {
 public:
  // Corrections above this amount wait for a second person.
  static constexpr int64_t kOnePersonNanoUsd = 12'000;
  struct Sums {
    int64_t paid_nano_usd = 0, granted_nano_usd = 0, held_nano_usd = 0, open = 0;
    int64_t receivable_nano_usd = 0;
    billing::Freeze frozen = billing::Freeze::kNone;
  };

  Reply Do(const billing::Operation& operation, int64_t now_us) {
    return std::visit(
        [&](const auto& op) {
          // Lower-case letters, digits and inner hyphens.
          static const std::regex kWorkspace("[0-9a-z]([0-9a-z-]{0,61}[0-9a-z])?");
          if (!std::regex_match(op.workspace, kWorkspace)) return No(Deny::kInvalid);
          now_us_ = now_us;
          return Execute(op);
        },
        operation);
  }

  // The histories of the simulation have no leases.
  static Reply Execute(const billing::TakeLease&) { return No(Deny::kInvalid); }
  static Reply Execute(const billing::ExpireLease&) { return No(Deny::kInvalid); }

  Sums SumsOf(const std::string& workspace) const {
    Sums sums;
    if (const auto money = money_.find(workspace); money != money_.end()) {
      sums.paid_nano_usd = money->second.paid;
      sums.granted_nano_usd = money->second.granted;
      sums.receivable_nano_usd = money->second.owed;
      sums.frozen = money->second.frozen;
    }
    for (const auto& [id, request] : requests_) {
      if (request.workspace != workspace || request.state != RequestState::kOpen) continue;
      sums.held_nano_usd += request.authorized;
      ++sums.open;
    }
    return sums;
  }
  int64_t SpentNanoUsd(const std::string& workspace, int32_t month) const {
    int64_t spent = 0;
    for (const auto& [id, request] : requests_) {
      if (request.workspace != workspace) continue;
      for (const auto& [m, amount] : request.charges) spent += m == month ? amount : 0;
    }
    return spent;
  }
  int64_t overrun_nano_usd() const {
    int64_t sum = 0;
    for (const auto& [id, request] : requests_) sum += request.overrun;
    return sum;
  }

 private:
  static constexpr int64_t kSecondUs = 1'000'000, kDayUs = 86'400 * kSecondUs;
  static constexpr int64_t kUnlimited = INT64_MAX;

  int64_t Held(const std::string& workspace, int32_t month = 0) const {
    int64_t held = 0;
    for (const auto& [id, request] : requests_) {
      if (request.workspace != workspace || request.state != RequestState::kOpen) continue;
      if (month == 0 || request.month == month) held += request.authorized;
    }
    return held;
  }
  int64_t Posted(const std::string& workspace) {
    return money_[workspace].paid + money_[workspace].granted;
  }
  int64_t Available(const std::string& workspace) { return Posted(workspace) - Held(workspace); }
  int64_t Room(const std::string& workspace, const std::optional<int64_t>& cap,
               int32_t month) const {
    if (!cap) return kUnlimited;
    return std::max<int64_t>(0, *cap - SpentNanoUsd(workspace, month) - Held(workspace, month));
  }
  // A lowered cap does not affect running requests: the larger of the cap at admission and the
  // current one applies.
  std::optional<int64_t> CapFor(const Request& request) {
    const std::optional<int64_t> now = money_[request.workspace].cap;
    if (!now || !request.cap) return std::nullopt;
    return std::max(*now, *request.cap);
  }

  // naive_commands.cc
  Reply Execute(const billing::OpenWallet& op);
  Reply Execute(const billing::AddCredit& op);
  Reply Execute(const billing::SetCap& op);
  Reply Execute(const billing::RepairClock& op);
  Reply Execute(const billing::Correct& op);
  Reply Execute(const billing::Decide& op);
  // Pays debt as soon as there is paid credit for it.
  void PayDebt(const std::string& workspace);
  static void EndDispute(Money& money);
  // Posts the correction, or returns why it is not possible now.
  Deny Post(const billing::Correct& op);
  struct Decision {
    billing::CommandState state = billing::CommandState::kPosted;
    std::string by;
  };
  static Reply WithState(billing::CommandState state);

  Reply Execute(const billing::Authorize& op) {
    const int64_t created_us = op.request_id.unix_ms() * 1000;
    if (op.request_id.empty() || op.prompt_bound < 0 || op.output_bound < 0 || op.attempt < 0 ||
        op.candidate < 0 || op.candidate > static_cast<int32_t>(op.fallbacks.size())) {
      return No(Deny::kInvalid);
    }
    if (now_us_ - created_us > 7 * kDayUs || created_us - now_us_ > kDayUs) {
      return No(Deny::kClock);
    }
    Reply yes = Yes();
    const Rates& asked =
        op.candidate == 0 ? op.rates : op.fallbacks[static_cast<size_t>(op.candidate) - 1].rates;
    yes.slice_nano_usd = Price(asked, 0, 4096, true);
    if (const auto found = requests_.find(op.request_id.ToHex()); found != requests_.end()) {
      Request& request = found->second;
      const billing::Authorize& body = request.body;
      if (request.workspace != op.workspace) return No(Deny::kIdReuse);
      if (request.state == RequestState::kTombstone) return No(Deny::kClosed);
      if (body.key_id != op.key_id || body.model != op.model || body.rates != op.rates ||
          body.price_version != op.price_version || body.prompt_bound != op.prompt_bound ||
          body.output_bound != op.output_bound || body.fallbacks != op.fallbacks) {
        return No(Deny::kIdReuse);
      }
      if (request.state != RequestState::kOpen || op.attempt < request.attempt)
        return No(Deny::kClosed);
      if (op.attempt == request.attempt && op.candidate != body.candidate)
        return No(Deny::kIdReuse);
      if (op.attempt > request.attempt) {
        request.attempt = op.attempt;
        request.body.candidate = op.candidate;
        request.sequence = request.prompt = request.completion = 0;
        KeepAlive(request);
      }
      yes.authorized_nano_usd = op.attempt == 0 ? request.first : request.authorized;
      return yes;
    }
    if (!money_.contains(op.workspace)) return No(Deny::kNoCredit);
    if (const billing::Freeze frozen = money_[op.workspace].frozen;
        frozen != billing::Freeze::kNone) {
      return No(frozen == billing::Freeze::kFailedCheck ? Deny::kFrozenByCheck : Deny::kFrozen);
    }
    const std::optional<int64_t> cap = money_[op.workspace].cap;
    const int32_t month = UtcMonth(now_us_);
    int64_t least = Price(op.rates, op.prompt_bound, op.output_bound > 0 ? 1 : 0, true);
    int64_t want = Price(op.rates, op.prompt_bound, std::min<int64_t>(op.output_bound, 4096), true);
    // Enough for every model that may answer.
    for (const billing::Candidate& other : op.fallbacks) {
      const int64_t out = other.output_bound;
      least = std::max(least, Price(other.rates, other.prompt_bound, out > 0 ? 1 : 0, true));
      want = std::max(want,
                      Price(other.rates, other.prompt_bound, std::min<int64_t>(out, 4096), true));
    }
    if (Posted(op.workspace) == 0 || Posted(op.workspace) < least) return No(Deny::kNoCredit);
    if (cap) {
      const int64_t left = *cap - SpentNanoUsd(op.workspace, month);
      if (left <= 0 || left < least) return No(Deny::kCap);
    }
    const int64_t get = std::min({want, Available(op.workspace), Room(op.workspace, cap, month)});
    if (get < least) return No(Deny::kHeld);
    Request request;
    request.workspace = op.workspace;
    request.body = op;
    request.month = month;
    request.cap = cap;
    request.first = request.authorized = get;
    request.attempt = op.attempt;
    request.created_us = now_us_;
    request.expires_us = now_us_ + 60 * kSecondUs;
    requests_[op.request_id.ToHex()] = request;
    yes.authorized_nano_usd = get;
    return yes;
  }

  void Raise(Request& request, int64_t by) {
    const int64_t take = std::min({by, Available(request.workspace),
                                   Room(request.workspace, CapFor(request), request.month)});
    if (take <= 0) return;
    request.authorized += take;
  }

  Reply Execute(const billing::Extend& op) {
    if (op.authorized_total_nano_usd < 0) return No(Deny::kInvalid);
    const Reply reported = Report(op, op.authorized_total_nano_usd);
    if (!reported.ok || reported.authorized_nano_usd >= op.authorized_total_nano_usd) {
      return reported;
    }
    Reply reply = reported;
    const int64_t total = op.authorized_total_nano_usd;
    const Request& request = requests_.at(op.request_id.ToHex());
    const std::optional<int64_t> cap = CapFor(request);
    reply.denied_by = Deny::kHeld;
    if (Posted(request.workspace) < total) reply.denied_by = Deny::kNoCredit;
    if (cap && *cap - SpentNanoUsd(request.workspace, request.month) < total) {
      reply.denied_by = Deny::kCap;
    }
    if (reply.denied_by == Deny::kHeld) reply.retry_after_ms = 1000;
    return reply;
  }

  Reply Execute(const billing::Heartbeat& op) { return Report(op, 0); }

  void KeepAlive(Request& request) {
    request.expires_us = std::max(request.expires_us,
                                  std::min(now_us_ + 60 * kSecondUs, request.created_us + kDayUs));
  }

  // Shared by extend and heartbeat; total 0 extends nothing.
  template <typename Op>
  Reply Report(const Op& op, int64_t total) {
    if (Bad(op.usage)) return No(Deny::kInvalid);
    const auto found = requests_.find(op.request_id.ToHex());
    if (found == requests_.end()) return No(Deny::kInvalid);
    Request& request = found->second;
    if (request.workspace != op.workspace) return No(Deny::kIdReuse);
    if (request.state != RequestState::kOpen || op.attempt < request.attempt) {
      return ReplyFor(request, Deny::kClosed);
    }
    if (op.sequence > request.sequence) {
      request.sequence = op.sequence;
      KeepAlive(request);
      if (op.usage.prompt >= request.prompt && op.usage.completion >= request.completion) {
        request.prompt = op.usage.prompt;
        request.completion = op.usage.completion;
      }
    }
    Raise(request, total - request.authorized);
    return ReplyFor(request);
  }

  // Charges granted credit first.
  void Take(Request& request, int64_t amount, int32_t month) {
    Money& money = money_[request.workspace];
    const int64_t granted = std::min(amount, money.granted);
    money.granted -= granted;
    money.paid -= amount - granted;
    request.from_granted += granted;
    request.charges[month] += amount;
  }

  void Close(Request& request, RequestState state, int64_t in, int64_t out) {
    const int64_t cost = Price(request.rates(), in, out, false);
    Raise(request, cost - request.authorized);
    request.state = state;  // releases its reservation
    request.closed_us = now_us_;
    const int64_t pays = std::min(cost, request.authorized);
    request.overrun = cost - pays;
    Take(request, pays, request.month);
    PayDebt(request.workspace);
  }

  Reply Execute(const billing::Settle& op) {
    if (Bad(op.usage) || op.outcome == Outcome::kNone) return No(Deny::kInvalid);
    const auto found = requests_.find(op.request_id.ToHex());
    if (found == requests_.end()) return No(Deny::kInvalid);
    Request& request = found->second;
    if (request.workspace != op.workspace) return No(Deny::kIdReuse);
    if (op.attempt < request.attempt) return ReplyFor(request, Deny::kClosed);
    const auto is_free = [](const billing::Settle& settle) {
      return settle.outcome == Outcome::kFailedBeforeOutput ||
             (settle.usage.prompt == 0 && settle.usage.completion == 0);
    };
    if (request.state == RequestState::kOpen) {
      request.settle = Final(op, request);
      if (is_free(*request.settle)) {
        Close(request, RequestState::kVoided, 0, 0);
      } else {
        Close(request, RequestState::kSettled, request.settle->usage.prompt,
              request.settle->usage.completion);
      }
      return ReplyFor(request);
    }
    if (request.state == RequestState::kExpired) {
      const billing::Settle settle = Final(op, request);
      return SettleLate(settle, request, is_free(settle));
    }
    if (request.settle && SameSettle(*request.settle, op)) return ReplyFor(request);
    // A report that knows less than the one that closed the request.
    const bool voided =
        request.state == RequestState::kVoided || request.state == RequestState::kTombstone;
    if (is_free(op) && voided) return ReplyFor(request);
    if (op.outcome == Outcome::kFailedBeforeOutput) return ReplyFor(request);
    if (op.outcome == Outcome::kRecovered && request.settle && !request.free()) {
      return ReplyFor(request);
    }
    return ReplyFor(request, request.free() || !request.settle ? Deny::kClosed : Deny::kIdReuse);
  }

  void GiveBack(Request& request, int64_t amount) {
    if (amount == 0) return;
    Money& money = money_[request.workspace];
    const int64_t to_paid = std::min(amount, request.charged() - request.from_granted);
    money.paid += to_paid;
    money.granted += amount - to_paid;
    request.from_granted -= amount - to_paid;
    const int64_t of_its_month = std::min(amount, SpentNanoUsd(request.workspace, request.month));
    request.charges[request.month] -= of_its_month;
    request.charges[UtcMonth(now_us_)] -= amount - of_its_month;
    PayDebt(request.workspace);
  }

  Reply SettleLate(const billing::Settle& op, Request& request, bool free) {
    if (now_us_ - request.closed_us > kDayUs) return ReplyFor(request, Deny::kClosed);
    const int64_t real =
        free ? 0 : Price(request.rates(), op.usage.prompt, op.usage.completion, false);
    const int64_t delta = real - request.charged();
    const int32_t next = request.month % 100 == 12 ? request.month + 89 : request.month + 1;
    const int32_t month =
        now_us_ < UtcMonthStartUs(next) + 26 * 3600 * kSecondUs ? request.month : UtcMonth(now_us_);
    if (delta > 0) {
      Take(request,
           std::min({delta, Available(request.workspace),
                     Room(request.workspace, CapFor(request), month)}),
           month);
    } else if (delta < 0) {
      GiveBack(request, -delta);
    }
    request.overrun = real - request.charged();
    request.state = RequestState::kCorrected;
    request.settle = op;
    return ReplyFor(request);
  }

  Reply Execute(const billing::Void& op) {
    if (op.request_id.empty()) return No(Deny::kInvalid);
    const auto found = requests_.find(op.request_id.ToHex());
    if (found == requests_.end()) {
      const int64_t age_us = now_us_ - op.request_id.unix_ms() * 1000;
      if (age_us > 7 * kDayUs) return No(Deny::kInvalid);
      // Nothing is stored when a delayed authorize cannot open a hold.
      if (!money_.contains(op.workspace) || Posted(op.workspace) == 0 || age_us > 120 * kSecondUs)
        return Yes();
      Request& tombstone = requests_[op.request_id.ToHex()];
      tombstone.workspace = op.workspace;
      tombstone.state = RequestState::kTombstone;
      return ReplyFor(tombstone);
    }
    Request& request = found->second;
    if (request.workspace != op.workspace) return No(Deny::kIdReuse);
    if (request.state == RequestState::kOpen) Close(request, RequestState::kVoided, 0, 0);
    if (op.refused && request.state != RequestState::kVoided &&
        request.state != RequestState::kTombstone) {
      if (request.free()) return ReplyFor(request);
      if (now_us_ - request.closed_us > kDayUs) return ReplyFor(request, Deny::kClosed);
      GiveBack(request, request.charged());
      if (request.overrun != 0) request.overrun = 0;
      request.state = RequestState::kCorrected;
      request.refused = true;
      if (request.settle) request.settle->outcome = Outcome::kFailedBeforeOutput;
      return ReplyFor(request);
    }
    const bool nothing_was_used = request.state == RequestState::kVoided ||
                                  request.state == RequestState::kTombstone ||
                                  (request.state == RequestState::kExpired && !request.delivered());
    return ReplyFor(request, nothing_was_used ? Deny::kNone : Deny::kClosed);
  }

  // Dead letters move no money of their own; the histories have none.
  Reply Execute(const billing::ResolveDeadLetter& op) { return No(Deny::kUnknownDeadLetter); }

  Reply Execute(const billing::Expire& op) {
    const auto found = requests_.find(op.request_id.ToHex());
    if (found == requests_.end()) return No(Deny::kInvalid);
    Request& request = found->second;
    if (request.workspace != op.workspace) return No(Deny::kInvalid);
    if (request.state != RequestState::kOpen) return ReplyFor(request, Deny::kClosed);
    if (request.expires_us > now_us_) return ReplyFor(request, Deny::kInvalid);
    if (!request.delivered()) {
      Close(request, RequestState::kExpired, 0, 0);
    } else {
      Close(request, RequestState::kExpired, request.prompt, request.completion);
    }
    return ReplyFor(request);
  }

  int64_t now_us_ = 0;
  std::map<std::string, Money> money_;
  std::map<std::string, billing::Operation> commands_;
  std::map<std::string, Decision> decisions_;  // by the key of the command
  std::map<std::string, Request> requests_;    // by hexadecimal id
};

}  // namespace tollgate::simulation
