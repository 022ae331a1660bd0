// State of requests and wallets in the naive ledger, and its rules for one request. Like
// naive_ledger.h, it must include nothing of services/billing except its plain values.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "services/billing/domain/operations.h"

namespace tollgate::simulation {

using billing::Deny;
using billing::Outcome;
using billing::Reply;

enum class RequestState { kOpen, kSettled, kVoided, kExpired, kCorrected, kTombstone };
struct Request {
  std::string workspace;
  RequestState state = RequestState::kOpen;
  billing::Authorize body;
  std::optional<billing::Settle> settle;
  int32_t month = 0;
  std::optional<int64_t> cap;
  int64_t first = 0, authorized = 0;  // nano-USD, as every amount here
  int64_t created_us = 0, expires_us = 0, closed_us = 0;
  int32_t attempt = 0;
  bool refused = false;
  int64_t sequence = 0;
  int64_t prompt = 0, completion = 0;  // from the last heartbeat
  std::map<int32_t, int64_t> charges;  // by month
  int64_t from_granted = 0;
  int64_t overrun = 0;
  // Rates of the model that was asked last.
  Rates rates() const {
    return body.candidate == 0 ? body.rates
                               : body.fallbacks[static_cast<size_t>(body.candidate) - 1].rates;
  }
  bool free() const {
    return refused || (settle ? settle->outcome == Outcome::kFailedBeforeOutput
                              : state == RequestState::kVoided);
  }
  // Whether a part of the answer counts as delivered when the hold expires.
  bool delivered() const { return body.streamed && completion > 0; }
  int64_t charged() const {
    int64_t sum = 0;
    for (const auto& [month, amount] : charges) sum += amount;
    return sum;
  }
};
struct Money {
  int64_t paid = 0, granted = 0, owed = 0;
  billing::Freeze frozen = billing::Freeze::kNone;
  std::optional<int64_t> cap;
};

inline bool Bad(const billing::Usage& u) {
  const int64_t all[] = {u.prompt, u.cached, u.cache_write, u.completion, u.reasoning};
  return std::any_of(std::begin(all), std::end(all),
                     [](int64_t n) { return n < 0 || n > (int64_t{1} << 33); });
}
inline Reply No(Deny reason) {
  Reply reply;
  reply.denied_by = reason;
  if (reason == Deny::kHeld) reply.retry_after_ms = 1000;
  return reply;
}
inline Reply Yes() {
  Reply reply;
  reply.ok = true;
  return reply;
}
inline Reply ReplyFor(const Request& request, Deny reason = Deny::kNone) {
  Reply reply;
  reply.ok = reason == Deny::kNone;
  reply.denied_by = reason;
  reply.authorized_nano_usd = request.authorized;
  reply.charged_nano_usd = request.charged();
  return reply;
}
// Exact in 128 bits; reserved amounts round up, charges round down.
inline int64_t Price(const Rates& rates, int64_t in, int64_t out, bool up) {
  const Int128 pico = Int128{in} * rates.input_pico_usd + Int128{out} * rates.output_pico_usd;
  return static_cast<int64_t>((pico + (up ? 999 : 0)) / 1000);
}

inline bool SameSettle(const billing::Settle& a, const billing::Settle& b) {
  const auto cached = [](const billing::Settle& op) {
    return std::min(op.usage.cached, op.usage.prompt);
  };
  return a.outcome == b.outcome && a.usage.prompt == b.usage.prompt &&
         a.usage.completion == b.usage.completion && cached(a) == cached(b) &&
         a.cut_by_credit == b.cut_by_credit && a.estimated == b.estimated && a.engine == b.engine;
}

// The journal may be older than the last heartbeat.
inline billing::Settle Final(billing::Settle op, const Request& request) {
  if (op.outcome != Outcome::kRecovered) return op;
  op.usage.prompt = std::max(op.usage.prompt, request.prompt);
  op.usage.completion = std::max(op.usage.completion, request.completion);
  return op;
}

}  // namespace tollgate::simulation
