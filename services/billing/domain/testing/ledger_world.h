// A ledger in memory for tests, and short constructors of operations.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

inline Id TestId(int n, int64_t created_us) {
  return Id::Make(created_us / 1000, 0, static_cast<uint64_t>(n));
}

// One nano-USD per input token, two per output token.
inline constexpr Rates kTestRates = {1000, 2000};

inline Authorize MakeAuthorize(Id id, int64_t prompt, int64_t output,
                               std::string workspace = "ws") {
  Authorize op;
  op.request_id = id;
  op.workspace = std::move(workspace);
  op.key_id = "key";
  op.model = "model";
  op.rates = kTestRates;
  op.price_version = 3;
  op.prompt_bound = prompt;
  op.output_bound = output;
  op.streamed = true;
  return op;
}
inline Extend MakeExtend(Id id, int64_t sequence, int64_t total_nano_usd, int64_t prompt = 0,
                         int64_t completion = 0) {
  return {id, "ws", sequence, {prompt, 0, 0, completion, 0}, total_nano_usd, 0};
}
inline Heartbeat MakeHeartbeat(Id id, int64_t sequence, int64_t prompt, int64_t completion) {
  return {id, "ws", sequence, {prompt, 0, 0, completion, 0}, 0};
}
inline Settle MakeSettle(Id id, int64_t prompt, int64_t completion,
                         Outcome outcome = Outcome::kCompleted, std::string workspace = "ws") {
  Settle op;
  op.request_id = id;
  op.workspace = std::move(workspace);
  op.sequence = 100;
  op.usage = {prompt, 0, 0, completion, 0};
  op.outcome = outcome;
  op.engine = "engine";
  return op;
}
inline Void MakeVoid(Id id, bool refused = false) { return {id, "ws", "test", refused}; }
inline Expire MakeExpire(Id id) { return {id, "ws"}; }
inline AddCredit MakeAddCredit(std::string command_id, int64_t amount_nano_usd,
                               bool granted = false) {
  AddCredit op;
  op.workspace = "ws";
  op.command_id = std::move(command_id);
  op.amount_nano_usd = amount_nano_usd;
  op.granted = granted;
  op.actor = "tester";
  return op;
}
inline SetCap MakeSetCap(std::string command_id, std::optional<int64_t> cap_nano_usd) {
  return {"ws", std::move(command_id), cap_nano_usd, "tester"};
}

// A ledger and its clock.
struct World {
  State state;
  Policy policy;
  int64_t now_us = 1'763'700'000'000'000;  // 2025-11-21
  Applied last;

  Reply Do(const Operation& operation) {
    last = Apply(state, {&operation, 1}, now_us, policy);
    return last.replies.front();
  }
  Id NewId() { return TestId(++ids, now_us); }
  const Wallet& wallet() { return state.wallets["ws"]; }
  const Hold& hold(const Id& id) { return state.holds.at(id); }
  Month month() { return state.months[MonthKey("ws", UtcMonth(now_us))]; }
  int ids = 0;
};

// Checks after each test that the wallet agrees with the open holds.
class LedgerTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(world.last.violations.empty());
    int64_t held_nano_usd = 0;
    int64_t open = 0;
    for (const auto& [id, hold] : world.state.holds) {
      if (hold.state != HoldState::kOpen) continue;
      held_nano_usd += hold.authorized_nano_usd;
      ++open;
    }
    for (const auto& [key, lease] : world.state.leases) {
      held_nano_usd += lease.reserved_nano_usd();
      open += lease.reserved_nano_usd() > 0 ? 1 : 0;
    }
    EXPECT_EQ(world.wallet().held_nano_usd, held_nano_usd);
    EXPECT_EQ(world.wallet().open_holds, open);
    if (world.wallet().receivable_nano_usd > 0) {
      EXPECT_LE(std::min(world.wallet().paid_nano_usd, world.wallet().available_nano_usd()), 0)
          << "a receivable is paid from available credit at once";
    }
  }
  void Credit(int64_t amount_nano_usd, bool granted = false) {
    const std::string command_id = "c" + std::to_string(++commands);
    ASSERT_TRUE(world.Do(MakeAddCredit(command_id, amount_nano_usd, granted)).ok);
  }
  Id Open(int64_t prompt = 100, int64_t output = 100) {
    const Id id = world.NewId();
    EXPECT_TRUE(world.Do(MakeAuthorize(id, prompt, output)).ok);
    return id;
  }
  World world;
  int commands = 0;
};

}  // namespace tollgate::billing
