#include "services/billing/domain/batch.h"

#include <gtest/gtest.h>

#include "services/billing/domain/chain.h"
#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

using BatchTest = LedgerTest;

TEST_F(BatchTest, EntriesFormAHashChainWithoutGaps) {
  std::vector<Entry> entries;
  const auto run = [&](const Operation& op) {
    world.Do(op);
    entries.insert(entries.end(), world.last.entries.begin(), world.last.entries.end());
  };
  run(MakeAddCredit("c", 1000));
  const Id id = world.NewId();
  run(MakeAuthorize(id, 100, 50));
  run(MakeSettle(id, 100, 10));
  std::string head(32, '\0');
  for (size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].sequence, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(entries[i].hash, EntryHash(head, entries[i]));
    head = entries[i].hash;
  }
  EXPECT_EQ(world.wallet().head, head);
  ASSERT_EQ(entries.size(), 4U);  // topup, hold, settle, charge
  Entry changed = entries[1];
  ++changed.amount_nano_usd;
  EXPECT_NE(EntryHash(entries[0].hash, changed), entries[1].hash);
}

TEST_F(BatchTest, AnOperationThatBreaksAnInvariantIsRefusedAndUndone) {
  Credit(1000);
  const Id id = Open(100, 50);
  // A corrupt wallet: held exceeds posted.
  Wallet& wallet = world.state.wallets.at("ws");
  const Wallet sound = wallet;
  wallet.paid_nano_usd = 50;
  const Wallet broken = wallet;
  const Reply reply = world.Do(MakeSettle(id, 100, 50));
  EXPECT_EQ(reply.denied_by, Deny::kUnavailable);
  EXPECT_EQ(world.last.violations.size(), 1U);
  EXPECT_TRUE(world.last.entries.empty());
  EXPECT_TRUE(world.last.changed_holds.empty());
  EXPECT_EQ(world.hold(id).state, HoldState::kOpen);
  EXPECT_EQ(wallet.sequence, broken.sequence);
  EXPECT_EQ(wallet.head, broken.head);
  EXPECT_EQ(wallet.paid_nano_usd, 50);
  wallet = sound;
  world.last = {};
}

}  // namespace
}  // namespace tollgate::billing
