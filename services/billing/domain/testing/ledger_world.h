// A whole ledger in memory, for tests: short words for the operations.
#pragma once

#include <string>

#include "common/base/clock.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

inline Id TestId(int n, int64_t made_us) {
  return Id::Make(made_us / 1000, 0, static_cast<uint64_t>(n));
}

// One nano-USD an input token, two an output token.
inline constexpr Rates kTestRates = {1000, 2000};

inline Op AuthorizeOp(Id id, int64_t prompt, int64_t output, std::string workspace = "ws") {
  Op op;
  op.kind = OpKind::kAuthorize;
  op.id = id;
  op.workspace = std::move(workspace);
  op.key_id = "key";
  op.model = "model";
  op.rates = kTestRates;
  op.price_version = 3;
  op.prompt_bound = prompt;
  op.output_bound = output;
  return op;
}
inline Op MeterOp(OpKind kind, Id id, int64_t sequence, int64_t prompt, int64_t completion) {
  Op op;
  op.kind = kind;
  op.id = id;
  op.workspace = "ws";
  op.sequence = sequence;
  op.usage = {prompt, 0, 0, completion, 0};
  return op;
}
inline Op ExtendOp(Id id, int64_t sequence, int64_t total, int64_t prompt = 0,
                   int64_t completion = 0) {
  Op op = MeterOp(OpKind::kExtend, id, sequence, prompt, completion);
  op.authorized_total = total;
  return op;
}
inline Op HeartbeatOp(Id id, int64_t sequence, int64_t prompt, int64_t completion) {
  return MeterOp(OpKind::kHeartbeat, id, sequence, prompt, completion);
}
inline Op SettleOp(Id id, int64_t prompt, int64_t completion,
                   Outcome outcome = Outcome::kCompleted) {
  Op op = MeterOp(OpKind::kSettle, id, 100, prompt, completion);
  op.outcome = outcome;
  op.engine = "engine";
  return op;
}
inline Op VoidOp(Id id) {
  Op op;
  op.kind = OpKind::kVoid;
  op.id = id;
  op.workspace = "ws";
  op.reason = "test";
  return op;
}
inline Op ExpireOp(Id id) {
  Op op = VoidOp(id);
  op.kind = OpKind::kExpire;
  return op;
}
inline Op CreditOp(std::string command, int64_t amount, bool granted = false) {
  Op op;
  op.kind = OpKind::kAddCredit;
  op.workspace = "ws";
  op.command = std::move(command);
  op.amount = amount;
  op.granted = granted;
  op.actor = "tester";
  return op;
}
inline Op CapOp(std::string command, std::optional<int64_t> cap) {
  Op op;
  op.kind = OpKind::kSetCap;
  op.workspace = "ws";
  op.command = std::move(command);
  op.cap = cap;
  op.actor = "tester";
  return op;
}

// State and time together.
struct World {
  State state;
  Policy policy;
  int64_t now_us = 1'763'700'000'000'000;  // 2025-11-21
  Applied last;

  Reply Do(const Op& op) {
    last = Apply(state, {&op, 1}, now_us, policy);
    return last.replies.front();
  }
  Id NewId() { return TestId(++ids, now_us); }
  const Wallet& wallet() { return state.wallets["ws"]; }
  const Hold& hold(const Id& id) { return state.holds.at(id); }
  Month month() { return state.months[MonthKey("ws", UtcMonth(now_us))]; }
  int ids = 0;
};

}  // namespace tollgate::billing
