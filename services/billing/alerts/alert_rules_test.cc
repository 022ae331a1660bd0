#include "services/billing/alerts/alert_rules.h"

#include <gtest/gtest.h>

namespace tollgate::billing::alerts {
namespace {

// Applies the steps like the store.
class AlertRulesTest : public ::testing::Test {
 protected:
  AlertRulesTest() {
    setting_.updated_us = 1;
    setting_.low_balance_nano_usd = 100;
    facts_.month = 202611;
    facts_.available_nano_usd = 1000;
  }
  std::vector<std::string> Run() {
    std::vector<std::string> notified;
    for (Step& step : Decide(setting_, facts_, states_)) {
      std::erase_if(states_, [&](const AlertState& state) {
        return state.kind == step.next.kind && state.level == step.next.level;
      });
      ++step.next.version;
      states_.push_back(step.next);
      if (!step.notify) continue;
      std::string name(Name(step.next.kind));
      if (step.next.level > 0) name += std::to_string(step.next.level);
      notified.push_back(std::move(name));
    }
    return notified;
  }
  std::vector<std::string> Available(int64_t nano_usd) {
    facts_.available_nano_usd = nano_usd;
    ++facts_.sequence;
    return Run();
  }
  std::vector<std::string> Spent(int64_t nano_usd) {
    facts_.month_spent_nano_usd = nano_usd;
    return Run();
  }
  using Names = std::vector<std::string>;
  AlertSetting setting_;
  Facts facts_;
  std::vector<AlertState> states_;
};

TEST_F(AlertRulesTest, ABalanceThatMovesAroundItsLimitMakesOneNotice) {
  EXPECT_EQ(Available(100), Names{}) << "not below";
  EXPECT_EQ(Available(99), Names{"low_balance"});
  for (const int64_t nano_usd : {100, 98, 120, 99, 0, 119}) {
    EXPECT_EQ(Available(nano_usd), Names{}) << nano_usd;
  }
  EXPECT_EQ(Available(121), Names{}) << "above 1.2 times the limit the alert is armed";
  EXPECT_EQ(Available(99), Names{"low_balance"});
}

TEST_F(AlertRulesTest, ATopUpAboveTheLimitArmsTheLowBalance) {
  EXPECT_EQ(Available(50), Names{"low_balance"});
  facts_.topped_up = true;
  EXPECT_EQ(Available(80), Names{}) << "still below: not again";
  EXPECT_EQ(Available(105), Names{});
  facts_.topped_up = false;
  EXPECT_EQ(Available(99), Names{"low_balance"});
}

TEST_F(AlertRulesTest, TheSearchForATopUpStaysShort) {
  EXPECT_EQ(Available(50), Names{"low_balance"});
  facts_.sequence += 5000;
  EXPECT_EQ(Available(110), Names{});
  EXPECT_EQ(states_.front().mark, facts_.sequence);
  EXPECT_TRUE(states_.front().fired);
}

TEST_F(AlertRulesTest, EachStepOfADisputeIsToldOnce) {
  EXPECT_EQ(Run(), Names{});
  facts_.dispute_opened = {10, "p1", 100};
  EXPECT_EQ(Run(), Names{"dispute_opened"});
  EXPECT_EQ(Run(), Names{});
  facts_.dispute_opened = {20, "p2", 100};
  facts_.dispute_won = {15, "p1", 100};
  EXPECT_EQ(Run(), (Names{"dispute_opened", "dispute_won"}));
  facts_.dispute_opened = {};  // long ago
  facts_.dispute_lost = {30, "p2", 100};
  EXPECT_EQ(Run(), Names{"dispute_lost"});
  EXPECT_EQ(Run(), Names{});
}

TEST_F(AlertRulesTest, EachFreezeIsToldOnce) {
  for (int i = 0; i < 2; ++i) {
    facts_.frozen = true;
    EXPECT_EQ(Run(), Names{"frozen"});
    EXPECT_EQ(Run(), Names{});
    facts_.frozen = false;
    EXPECT_EQ(Run(), Names{});
  }
}

TEST_F(AlertRulesTest, EachPercentOfTheCapIsToldOnceAMonth) {
  facts_.cap_nano_usd = 1000;
  EXPECT_EQ(Spent(499), Names{});
  EXPECT_EQ(Spent(500), Names{"cap_percent50"});
  EXPECT_EQ(Spent(799), Names{});
  EXPECT_EQ(Spent(1000), (Names{"cap_percent80", "cap_percent100"}));
  EXPECT_EQ(Spent(990), Names{}) << "a correction";
  EXPECT_EQ(Spent(1000), Names{});
  facts_.month = 202612;
  EXPECT_EQ(Spent(10), Names{});
  EXPECT_EQ(Spent(600), Names{"cap_percent50"});
}

TEST_F(AlertRulesTest, ARaisedCapArmsThePercentsThatAreNotReachedAnyMore) {
  facts_.cap_nano_usd = 1000;
  EXPECT_EQ(Spent(1000).size(), 3u);
  facts_.cap_nano_usd = 1500;
  EXPECT_EQ(Spent(1000), Names{}) << "66 %";
  EXPECT_EQ(Spent(1200), Names{"cap_percent80"}) << "the spend never fell below 50 %";
  facts_.cap_nano_usd = 1200;
  EXPECT_EQ(Spent(1200), Names{"cap_percent100"});
  facts_.cap_nano_usd = 0;
  EXPECT_EQ(Spent(1200), Names{});
}

TEST_F(AlertRulesTest, ADeclineThatPausesAtOnceIsOneNotice) {
  facts_.reload_enabled = facts_.reload_declined = facts_.reload_paused = true;
  EXPECT_EQ(Run(), Names{"reload_paused"});
  EXPECT_EQ(Run(), Names());
}

TEST_F(AlertRulesTest, ReloadIsToldOnAChangeOfItsState) {
  facts_.reload_enabled = facts_.reload_declined = true;
  EXPECT_EQ(Run(), Names{"reload_failed"});
  EXPECT_EQ(Run(), Names{});
  facts_.reload_paused = true;
  EXPECT_EQ(Run(), Names{"reload_paused"});
  EXPECT_EQ(Run(), Names{});
  facts_.reload_paused = facts_.reload_declined = false;
  EXPECT_EQ(Run(), Names{});
  facts_.reload_paused = true;
  EXPECT_EQ(Run(), Names{"reload_paused"});
}

TEST_F(AlertRulesTest, WithoutSettingsOnlyTheOperatorIsTold) {
  setting_ = {};
  facts_.cap_nano_usd = 100;
  facts_.month_spent_nano_usd = 100;
  facts_.available_nano_usd = 0;
  facts_.books_disagree = true;
  EXPECT_EQ(Run(), Names{"books_disagree"});
  EXPECT_EQ(Run(), Names{});
}

}  // namespace
}  // namespace tollgate::billing::alerts
