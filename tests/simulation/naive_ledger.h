// The rules of the ledger once more, as plainly as they can be said: no stored balances (every sum
// is added up again from the requests), no entries, no batches. It was written from the rules
// (reliability.md 1.2-1.7, decisions.md 1-10) and must never include anything of services/billing
// but its plain values.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "services/billing/domain/types.h"

namespace tollgate::simulation {

using billing::Deny;
using billing::Op;
using billing::OpKind;
using billing::Outcome;
using billing::Reply;

class NaiveLedger {
 public:
  struct Sums {
    int64_t paid = 0, granted = 0, held = 0, open = 0;
  };

  Reply Do(const Op& op, int64_t now) {
    static const std::string kAllowed =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-";
    if (op.workspace.empty() || op.workspace.find_first_not_of(kAllowed) != std::string::npos) {
      return No(Deny::kInvalid);
    }
    // The books of a workspace never run backwards.
    now_ = std::max(now, clock_[op.workspace]);
    switch (op.kind) {
      case OpKind::kAddCredit:
        return Credit(op);
      case OpKind::kSetCap:
        return Cap(op);
      case OpKind::kAuthorize:
        return Authorize(op);
      case OpKind::kVoid:
        return Void(op);
      default:
        break;
    }
    if (op.kind != OpKind::kExpire && (Bad(op.usage) || op.authorized_total < 0)) {
      return No(Deny::kInvalid);
    }
    if (op.kind == OpKind::kSettle && op.outcome == Outcome::kNone) return No(Deny::kInvalid);
    const auto found = requests_.find(op.id.ToHex());
    if (found == requests_.end()) return No(Deny::kInvalid);
    Request& request = found->second;
    if (request.workspace != op.workspace) {
      return No(op.kind == OpKind::kExpire ? Deny::kInvalid : Deny::kIdReuse);
    }
    if (op.kind == OpKind::kSettle) return Settle(op, request);
    if (op.kind == OpKind::kExpire) return Expire(request);
    return Progress(op, request);
  }

  Sums SumsOf(const std::string& workspace) const {
    Sums sums;
    if (const auto money = money_.find(workspace); money != money_.end()) {
      sums.paid = money->second.paid;
      sums.granted = money->second.granted;
    }
    for (const auto& [id, request] : requests_) {
      if (request.workspace != workspace || request.state != State::kOpen) continue;
      sums.held += request.authorized;
      ++sums.open;
    }
    return sums;
  }
  int64_t Spent(const std::string& workspace, int32_t month) const {
    int64_t spent = 0;
    for (const auto& [id, request] : requests_) {
      if (request.workspace != workspace) continue;
      for (const auto& [m, amount] : request.charges) spent += m == month ? amount : 0;
    }
    return spent;
  }
  int64_t overrun() const {
    int64_t sum = 0;
    for (const auto& [id, request] : requests_) sum += request.overrun;
    return sum;
  }

 private:
  enum class State { kOpen, kSettled, kVoided, kExpired, kCorrected, kTombstone };
  struct Request {
    std::string workspace;
    State state = State::kOpen;
    Op body;
    Op settle;
    bool settled = false;
    int32_t month = 0;
    std::optional<int64_t> cap;
    int64_t first = 0, authorized = 0, created = 0, expires = 0, closed = 0, sequence = 0;
    int64_t prompt = 0, completion = 0;  // last sign of life
    std::map<int32_t, int64_t> charges;  // by month
    int64_t from_granted = 0;
    int64_t overrun = 0;
    int64_t charged() const {
      int64_t sum = 0;
      for (const auto& [month, amount] : charges) sum += amount;
      return sum;
    }
  };
  struct Money {
    int64_t paid = 0, granted = 0;
    std::optional<int64_t> cap;
  };

  static constexpr int64_t kSecond = 1'000'000, kDay = 86'400 * kSecond;
  static constexpr int64_t kUnlimited = INT64_MAX;

  static bool Bad(const billing::Usage& u) {
    const int64_t all[] = {u.prompt, u.cached, u.cache_write, u.completion, u.reasoning};
    return std::any_of(std::begin(all), std::end(all),
                       [](int64_t n) { return n < 0 || n > (int64_t{1} << 33); });
  }
  static Reply No(Deny reason) {
    Reply reply;
    reply.denied_by = reason;
    if (reason == Deny::kHeld) reply.retry_after_ms = 1000;
    return reply;
  }
  static Reply Stands(const Request& request, Deny reason = Deny::kNone) {
    Reply reply;
    reply.ok = reason == Deny::kNone;
    reply.denied_by = reason;
    reply.authorized = request.authorized;
    reply.charged = request.charged();
    return reply;
  }
  // Exact in 128 bits; up for what is reserved, down for what is charged.
  static int64_t Price(const Rates& rates, int64_t in, int64_t out, bool up) {
    const Int128 pico = Int128{in} * rates.input_pico_usd + Int128{out} * rates.output_pico_usd;
    return static_cast<int64_t>((pico + (up ? 999 : 0)) / 1000);
  }
  int64_t Held(const std::string& workspace, int32_t month = 0) const {
    int64_t held = 0;
    for (const auto& [id, request] : requests_) {
      if (request.workspace != workspace || request.state != State::kOpen) continue;
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
    return std::max<int64_t>(0, *cap - Spent(workspace, month) - Held(workspace, month));
  }
  // A lowered cap lets running requests end: theirs is the larger of then and now.
  std::optional<int64_t> CapFor(const Request& request) {
    const std::optional<int64_t> now = money_[request.workspace].cap;
    if (!now || !request.cap) return std::nullopt;
    return std::max(*now, *request.cap);
  }
  void Touch(const std::string& workspace) { clock_[workspace] = now_; }

  Reply Credit(const Op& op) {
    if (op.command.empty() || op.amount <= 0) return No(Deny::kInvalid);
    const std::string key = op.workspace + "/" + op.command;
    Reply reply;
    reply.ok = true;
    if (commands_.contains(key)) {
      const Op& earlier = commands_[key];
      if (earlier.kind != op.kind || earlier.amount != op.amount || earlier.granted != op.granted) {
        return No(Deny::kIdReuse);
      }
    } else {
      commands_[key] = op;
      (op.granted ? money_[op.workspace].granted : money_[op.workspace].paid) += op.amount;
      Touch(op.workspace);
    }
    return reply;
  }

  Reply Cap(const Op& op) {
    if (op.command.empty() || op.cap.value_or(0) < 0) return No(Deny::kInvalid);
    const std::string key = op.workspace + "/" + op.command;
    Reply reply;
    reply.ok = true;
    if (commands_.contains(key)) {
      if (commands_[key].kind != op.kind || commands_[key].cap != op.cap) return No(Deny::kIdReuse);
    } else {
      commands_[key] = op;
      money_[op.workspace].cap = op.cap;
      Touch(op.workspace);
    }
    return reply;
  }

  Reply Authorize(const Op& op) {
    const int64_t made = op.id.unix_ms() * 1000;
    if (op.id.empty() || op.prompt_bound < 0 || op.output_bound < 0 || now_ - made > 7 * kDay ||
        made - now_ > kDay) {
      return No(Deny::kInvalid);
    }
    Reply yes;
    yes.ok = true;
    yes.slice = Price(op.rates, 0, 4096, true);
    if (const auto found = requests_.find(op.id.ToHex()); found != requests_.end()) {
      const Request& request = found->second;
      const Op& body = request.body;
      if (request.workspace != op.workspace) return No(Deny::kIdReuse);
      if (request.state == State::kTombstone) return No(Deny::kClosed);
      if (body.key_id != op.key_id || body.model != op.model || body.rates != op.rates ||
          body.price_version != op.price_version || body.prompt_bound != op.prompt_bound ||
          body.output_bound != op.output_bound) {
        return No(Deny::kIdReuse);
      }
      if (request.state != State::kOpen) return No(Deny::kClosed);
      yes.authorized = request.first;
      return yes;
    }
    if (!money_.contains(op.workspace)) return No(Deny::kNoCredit);
    const std::optional<int64_t> cap = money_[op.workspace].cap;
    const int32_t month = UtcMonth(now_);
    const int64_t least = Price(op.rates, op.prompt_bound, op.output_bound > 0 ? 1 : 0, true);
    const int64_t want =
        Price(op.rates, op.prompt_bound, std::min<int64_t>(op.output_bound, 4096), true);
    if (Posted(op.workspace) == 0 || Posted(op.workspace) < least) return No(Deny::kNoCredit);
    if (cap) {
      const int64_t left = *cap - Spent(op.workspace, month);
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
    request.created = now_;
    request.expires = now_ + 60 * kSecond;
    requests_[op.id.ToHex()] = request;
    Touch(op.workspace);
    yes.authorized = get;
    return yes;
  }

  int64_t Grow(Request& request, int64_t by) {
    const int64_t take = std::min({by, Available(request.workspace),
                                   Room(request.workspace, CapFor(request), request.month)});
    if (take <= 0) return 0;
    request.authorized += take;
    Touch(request.workspace);
    return take;
  }

  Reply Progress(const Op& op, Request& request) {
    if (request.state != State::kOpen) return Stands(request, Deny::kClosed);
    if (op.sequence > request.sequence) {
      request.sequence = op.sequence;
      request.expires =
          std::max(request.expires, std::min(now_ + 60 * kSecond, request.created + kDay));
      if (op.usage.prompt >= request.prompt && op.usage.completion >= request.completion) {
        request.prompt = op.usage.prompt;
        request.completion = op.usage.completion;
      }
      if (op.kind == OpKind::kExtend) Grow(request, op.authorized_total - request.authorized);
    }
    Reply reply;
    reply.authorized = request.authorized;
    reply.ok = op.kind == OpKind::kHeartbeat || request.authorized >= op.authorized_total;
    if (reply.ok) return reply;
    const std::optional<int64_t> cap = CapFor(request);
    reply.denied_by = Deny::kHeld;
    if (Posted(request.workspace) < op.authorized_total) reply.denied_by = Deny::kNoCredit;
    if (cap && *cap - Spent(request.workspace, request.month) < op.authorized_total) {
      reply.denied_by = Deny::kCap;
    }
    if (reply.denied_by == Deny::kHeld) reply.retry_after_ms = 1000;
    return reply;
  }

  // Granted credit burns first.
  void Take(Request& request, int64_t amount, int32_t month) {
    Money& money = money_[request.workspace];
    const int64_t granted = std::min(amount, money.granted);
    money.granted -= granted;
    money.paid -= amount - granted;
    request.from_granted += granted;
    request.charges[month] += amount;
    if (amount > 0) Touch(request.workspace);
  }

  void Close(Request& request, State state, int64_t in, int64_t out) {
    const int64_t cost = Price(request.body.rates, in, out, false);
    Grow(request, cost - request.authorized);
    request.state = state;  // its reservation is free from here on
    request.closed = now_;
    const int64_t pays = std::min(cost, request.authorized);
    request.overrun = cost - pays;
    Take(request, pays, request.month);
    Touch(request.workspace);
  }

  static bool SameSettle(const Op& a, const Op& b) {
    const auto cached = [](const Op& op) { return std::min(op.usage.cached, op.usage.prompt); };
    return a.outcome == b.outcome && a.usage.prompt == b.usage.prompt &&
           a.usage.completion == b.usage.completion && cached(a) == cached(b) &&
           a.cut_by_credit == b.cut_by_credit && a.estimated == b.estimated && a.engine == b.engine;
  }

  Reply Settle(const Op& op, Request& request) {
    const bool free = op.outcome == Outcome::kFailedBeforeOutput ||
                      (op.usage.prompt == 0 && op.usage.completion == 0);
    if (request.state == State::kOpen) {
      request.settle = op;
      request.settled = true;
      if (free) {
        Close(request, State::kVoided, 0, 0);
      } else {
        Close(request, State::kSettled, op.usage.prompt, op.usage.completion);
      }
      return Stands(request);
    }
    if (request.state == State::kExpired) return Late(op, request, free);
    if (!request.settled) return Stands(request, Deny::kClosed);
    return Stands(request, SameSettle(request.settle, op) ? Deny::kNone : Deny::kIdReuse);
  }

  Reply Late(const Op& op, Request& request, bool free) {
    if (now_ - request.closed > kDay) return Stands(request, Deny::kClosed);
    const int64_t real =
        free ? 0 : Price(request.body.rates, op.usage.prompt, op.usage.completion, false);
    const int64_t delta = real - request.charged();
    const int32_t next = request.month % 100 == 12 ? request.month + 89 : request.month + 1;
    const int32_t month =
        now_ < UtcMonthStartUs(next) + 26 * 3600 * kSecond ? request.month : UtcMonth(now_);
    if (delta > 0) {
      Take(request,
           std::min({delta, Available(request.workspace),
                     Room(request.workspace, CapFor(request), month)}),
           month);
    } else if (delta < 0) {
      Money& money = money_[request.workspace];
      const int64_t to_paid = std::min(-delta, request.charged() - request.from_granted);
      money.paid += to_paid;
      money.granted += -delta - to_paid;
      request.from_granted -= -delta - to_paid;
      request.charges[request.month] += delta;
      Touch(request.workspace);
    }
    if (request.overrun != real - request.charged()) Touch(request.workspace);
    request.overrun = real - request.charged();
    request.state = State::kCorrected;
    request.settle = op;
    request.settled = true;
    return Stands(request);
  }

  Reply Void(const Op& op) {
    if (op.id.empty()) return No(Deny::kInvalid);
    const auto found = requests_.find(op.id.ToHex());
    if (found == requests_.end()) {
      if (now_ - op.id.unix_ms() * 1000 > 7 * kDay) return No(Deny::kInvalid);
      Request& tombstone = requests_[op.id.ToHex()];
      tombstone.workspace = op.workspace;
      tombstone.state = State::kTombstone;
      return Stands(tombstone);
    }
    Request& request = found->second;
    if (request.workspace != op.workspace) return No(Deny::kIdReuse);
    if (request.state == State::kOpen) Close(request, State::kVoided, 0, 0);
    const bool nothing_was_used =
        request.state == State::kVoided || request.state == State::kTombstone ||
        (request.state == State::kExpired && request.prompt == 0 && request.completion == 0);
    return Stands(request, nothing_was_used ? Deny::kNone : Deny::kClosed);
  }

  Reply Expire(Request& request) {
    if (request.state != State::kOpen) return Stands(request, Deny::kClosed);
    if (request.expires > now_) return Stands(request, Deny::kInvalid);
    Close(request, State::kExpired, request.prompt, request.completion);
    return Stands(request);
  }

  int64_t now_ = 0;
  std::map<std::string, int64_t> clock_;
  std::map<std::string, Money> money_;
  std::map<std::string, Op> commands_;
  std::map<std::string, Request> requests_;  // by id
};

}  // namespace tollgate::simulation
