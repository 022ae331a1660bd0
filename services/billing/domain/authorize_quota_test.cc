// The monthly quota of a key is checked together with wallet and cap (docs/design/ledger.md 3).
#include <gtest/gtest.h>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {
namespace {

class QuotaTest : public LedgerTest {
 protected:
  Authorize Ask(std::optional<int64_t> quota_nano_usd, int64_t prompt = 100, int64_t output = 100) {
    Authorize op = MakeAuthorize(world.NewId(), prompt, output);
    op.key_quota_nano_usd = quota_nano_usd;
    return op;
  }
  const KeyMonth& row() {
    return world.state.key_months.at(KeyMonthKey("ws", "key", UtcMonth(world.now_us)));
  }
};

TEST_F(QuotaTest, SpendAndHoldsOfTheKeyCount) {
  Credit(10'000);
  const Authorize first = Ask(500);  // holds 300
  ASSERT_TRUE(world.Do(first).ok);
  EXPECT_EQ(row().held_nano_usd, 300);
  // 200 nano-USD are left: enough for the prompt and 50 tokens.
  const Authorize second = Ask(500);
  const Reply reply = world.Do(second);
  ASSERT_TRUE(reply.ok);
  EXPECT_EQ(reply.authorized_nano_usd, 200);
  EXPECT_EQ(world.Do(Ask(500)).denied_by, Deny::kHeld);
  EXPECT_TRUE(world.Do(MakeSettle(first.request_id, 100, 100)).ok);
  EXPECT_TRUE(world.Do(MakeSettle(second.request_id, 100, 50)).ok);
  EXPECT_EQ(row().spent_nano_usd, 500);
  EXPECT_EQ(row().held_nano_usd, 0);
  EXPECT_EQ(world.Do(Ask(500)).denied_by, Deny::kQuota);
  // A raised quota applies from the next request on. Other keys are not affected.
  EXPECT_TRUE(world.Do(Ask(900)).ok);
  Authorize other = Ask(100, 50, 20);
  other.key_id = "other";
  EXPECT_TRUE(world.Do(other).ok);
}

// Rotating a key, also three times, does not renew its quota.
TEST_F(QuotaTest, RotatedKeysShareTheQuota) {
  Credit(10'000);
  const auto ask_as = [this](const std::string& key, std::vector<std::string> others) {
    Authorize op = Ask(500);
    op.key_id = key;
    op.quota_keys = std::move(others);
    return op;
  };
  const Authorize first = ask_as("a", {});  // holds 300
  ASSERT_TRUE(world.Do(first).ok);
  const Authorize second = ask_as("b", {"a"});
  const Reply reply = world.Do(second);
  ASSERT_TRUE(reply.ok);
  EXPECT_EQ(reply.authorized_nano_usd, 200) << "what the hold of a leaves";
  EXPECT_EQ(world.Do(ask_as("c", {"a", "b"})).denied_by, Deny::kHeld);
  EXPECT_EQ(world.Do(ask_as("a", {"b", "c"})).denied_by, Deny::kHeld) << "in its overlap";
  EXPECT_EQ(world.Do(MakeExtend(second.request_id, 1, 900)).authorized_nano_usd, 200);
  EXPECT_TRUE(world.Do(MakeSettle(first.request_id, 100, 100)).ok);
  EXPECT_TRUE(world.Do(MakeSettle(second.request_id, 100, 50)).ok);
  EXPECT_EQ(world.Do(ask_as("d", {"a", "b", "c"})).denied_by, Deny::kQuota);
  EXPECT_TRUE(world.Do(ask_as("other", {})).ok);
}

TEST_F(QuotaTest, OnlySoManyKeysMayShareAQuota) {
  Credit(10'000);
  Authorize op = Ask(500);
  op.quota_keys.assign(64, "k");
  EXPECT_TRUE(world.Do(op).ok);
  Authorize more = Ask(500);
  more.quota_keys.assign(65, "k");
  EXPECT_EQ(world.Do(more).denied_by, Deny::kInvalid);
}

TEST_F(QuotaTest, AnExtensionStopsAtTheQuota) {
  Credit(10'000);
  const Authorize ask = Ask(500);
  ASSERT_TRUE(world.Do(ask).ok);
  EXPECT_EQ(world.Do(MakeExtend(ask.request_id, 1, 900)).authorized_nano_usd, 500);
}

// As with a settle in time, the operator pays what the quota does not cover.
TEST_F(QuotaTest, ALateSettleCountsAndStaysWithinTheQuota) {
  Credit(10'000);
  const Authorize late = Ask(500);
  ASSERT_TRUE(world.Do(late).ok);
  world.now_us += 61 * kSecondUs;
  ASSERT_TRUE(world.Do(MakeExpire(late.request_id)).ok);
  EXPECT_EQ(row().spent_nano_usd, 0);
  ASSERT_TRUE(world.Do(Ask(500)).ok);
  EXPECT_EQ(world.Do(MakeSettle(late.request_id, 100, 300)).charged_nano_usd, 200);
  EXPECT_EQ(world.hold(late.request_id).overrun_nano_usd, 500);
  EXPECT_EQ(row().spent_nano_usd, 200);
  EXPECT_EQ(row().held_nano_usd, 300) << "held by the running request";
  EXPECT_EQ(world.Do(Ask(500)).denied_by, Deny::kHeld);
}

TEST_F(QuotaTest, ARequestWithoutAQuotaCountsOnceTheKeyHasOne) {
  Credit(10'000);
  const Authorize before = Ask(std::nullopt);
  ASSERT_TRUE(world.Do(before).ok);
  const Authorize with = Ask(500, 10, 10);
  ASSERT_TRUE(world.Do(with).ok);
  EXPECT_TRUE(world.Do(MakeSettle(before.request_id, 100, 100)).ok);
  EXPECT_EQ(row().spent_nano_usd, 300);
  EXPECT_EQ(row().held_nano_usd, 30);
}

}  // namespace
}  // namespace tollgate::billing
