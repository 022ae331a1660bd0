#include "services/dashboard/front/summary.h"
#include "common/base/time_units.h"

#include <gtest/gtest.h>

namespace tollgate::dashboard {
namespace {

namespace pb = admin::v1;

constexpr int64_t kUsd = 1'000'000'000;
constexpr int64_t kMidnight = 1'767'225'600LL * 1'000'000;  // 2026-01-01 UTC

TEST(Summary, TheDayBeginsAtMidnightOfTheZone) {
  EXPECT_EQ(DayStartUs(kMidnight + kHourUs, "UTC"), kMidnight);
  EXPECT_EQ(DayStartUs(kMidnight + 22 * kHourUs, "Europe/Berlin"), kMidnight - kHourUs);
  EXPECT_EQ(DayStartUs(kMidnight + 23 * kHourUs, "Europe/Berlin"), kMidnight + 23 * kHourUs);
  EXPECT_EQ(DayStartUs(kMidnight + 7, "No/Such"), kMidnight);
}

TEST(Summary, DaysLeftAreFullDaysAtTheWeeksPace) {
  EXPECT_FALSE(DaysLeft(5 * kUsd, 0));
  EXPECT_EQ(DaysLeft(10 * kUsd, 7 * kUsd), 10);
  EXPECT_EQ(DaysLeft(10 * kUsd - 1, 7 * kUsd), 9);
  EXPECT_EQ(DaysLeft(0, 1), 0);
  EXPECT_EQ(DaysLeft(-5, 1), 0);
  EXPECT_EQ(DaysLeft(INT64_MAX, 1), INT32_MAX);
}

billing::v1::ReadSummaryResponse Quiet() {
  billing::v1::ReadSummaryResponse ledger;
  ledger.mutable_balance()->set_available_nano_usd(100 * kUsd);
  ledger.set_week_charged_nano_usd(7 * kUsd);
  return ledger;
}
std::vector<pb::AttentionKind> Kinds(const pb::Summary& summary) {
  std::vector<pb::AttentionKind> kinds;
  for (const auto& one : summary.attention()) kinds.push_back(one.kind());
  return kinds;
}
pb::Summary OfLedger(const billing::v1::ReadSummaryResponse& ledger) {
  return MakeSummary("acme", "UTC", kMidnight, {.ledger = &ledger});
}

TEST(Summary, MoneyWantsAttentionAtItsThresholds) {
  auto ledger = Quiet();
  EXPECT_TRUE(Kinds(OfLedger(ledger)).empty());
  EXPECT_EQ(OfLedger(ledger).days_left(), 100);
  ledger.set_low_balance_nano_usd(100 * kUsd);
  EXPECT_TRUE(Kinds(OfLedger(ledger)).empty()) << "not below it";
  ledger.set_low_balance_nano_usd(100 * kUsd + 1);
  EXPECT_EQ(Kinds(OfLedger(ledger)), std::vector{pb::ATTENTION_KIND_LOW_BALANCE});
  ledger = Quiet();
  ledger.mutable_balance()->set_available_nano_usd(3 * kUsd);
  EXPECT_TRUE(Kinds(OfLedger(ledger)).empty());
  ledger.mutable_balance()->set_available_nano_usd(3 * kUsd - 1);
  EXPECT_EQ(Kinds(OfLedger(ledger)), std::vector{pb::ATTENTION_KIND_LOW_BALANCE});
  ledger = Quiet();
  ledger.mutable_balance()->set_cap_nano_usd(10 * kUsd);
  ledger.mutable_balance()->set_month_spent_nano_usd(7 * kUsd);
  ledger.mutable_balance()->set_month_held_nano_usd(kUsd - 1);
  EXPECT_TRUE(Kinds(OfLedger(ledger)).empty());
  ledger.mutable_balance()->set_month_held_nano_usd(kUsd);
  ASSERT_EQ(Kinds(OfLedger(ledger)), std::vector{pb::ATTENTION_KIND_CAP});
  EXPECT_EQ(OfLedger(ledger).attention(0).percent(), 80);
  ledger.mutable_balance()->set_cap_nano_usd(0);
  EXPECT_EQ(OfLedger(ledger).attention(0).percent(), 100);
}

TEST(Summary, AutoReloadAndFrozenSayWhy) {
  auto ledger = Quiet();
  ledger.set_auto_reload("PAUSED");
  ledger.set_pause_reason("no card");
  ledger.set_frozen("dispute");
  const pb::Summary summary = OfLedger(ledger);
  ASSERT_EQ(Kinds(summary),
            (std::vector{pb::ATTENTION_KIND_FROZEN, pb::ATTENTION_KIND_AUTO_RELOAD}));
  EXPECT_EQ(summary.attention(0).detail(), "dispute");
  EXPECT_EQ(summary.attention(1).detail(), "no card");
}

TEST(Summary, RefusalsAreTodaysAndExpiringKeysAreNamed) {
  auth::v1::ReadWorkspaceFactsResponse facts;
  const auto add = [&](int64_t us, const char* code, const char* reason, int64_t count) {
    auto& sum = *facts.add_refusals();
    sum.set_quarter(us / (900LL * 1'000'000));
    sum.set_code(code);
    sum.set_reason(reason);
    sum.set_count(count);
  };
  add(kMidnight - 1, "rate_limited", "requests", 100);
  add(kMidnight, "rate_limited", "requests", 2);
  add(kMidnight + kHourUs, "rate_limited", "requests", 3);
  add(kMidnight + kHourUs, "rate_limited", "held", 1);
  add(kMidnight + kHourUs, "insufficient_credits", "", 9);
  auto& key = *facts.add_expiring_keys();
  key.set_key_id("k1");
  key.set_display_name("ci");
  key.set_expire_us(kMidnight + 86'400LL * 1'000'000);
  const pb::Summary summary = MakeSummary("acme", "UTC", kMidnight, {.facts = &facts});
  ASSERT_EQ(summary.refusals_size(), 3);
  EXPECT_EQ(summary.refusals(0).code(), "insufficient_credits");
  EXPECT_EQ(summary.refusals(1).count(), 5);
  EXPECT_EQ(summary.refusals(1).reason(), "requests");
  EXPECT_EQ(summary.refusals(2).reason(), "held");
  ASSERT_EQ(Kinds(summary), std::vector{pb::ATTENTION_KIND_KEY_EXPIRES});
  EXPECT_EQ(summary.attention(0).subject(), "workspaces/acme/keys/k1");
  EXPECT_EQ(summary.attention(0).display_name(), "ci");
  EXPECT_FALSE(summary.has_running_requests()) << "billing did not answer";
  EXPECT_FALSE(summary.has_available_usd());
  EXPECT_FALSE(summary.has_today());
  EXPECT_EQ(summary.missing_size(), 2);
}

TEST(Summary, ModelsOfTheWeekWithEnginesThatTakeNoRequests) {
  auto ledger = Quiet();
  ledger.add_week_models("a/one");
  ledger.add_week_models("a/two");
  std::map<std::string, pb::Engine> engines;
  const auto engine = [&](const char* id, pb::EngineState state,
                          std::initializer_list<const char*> models) {
    engines[id].set_state(state);
    for (const char* model : models) engines[id].add_models(model);
  };
  engine("e1", pb::ENGINE_STATE_UP, {"a/one"});
  engine("e2", pb::ENGINE_STATE_DOWN, {"a/one", "a/unused"});
  engine("e3", pb::ENGINE_STATE_PARTLY_UP, {"a/two"});
  engine("e4", pb::ENGINE_STATE_DRAINED, {"a/unused"});
  const pb::Summary summary =
      MakeSummary("acme", "UTC", kMidnight, {.ledger = &ledger, .engines = &engines});
  ASSERT_EQ(Kinds(summary), std::vector{pb::ATTENTION_KIND_ENGINES_DOWN});
  EXPECT_EQ(summary.attention(0).subject(), "models/a/one");
  EXPECT_EQ(summary.attention(0).down(), 1);
  EXPECT_EQ(summary.attention(0).engines(), 2);
  EXPECT_EQ(summary.ShortDebugString().find("e2"), std::string::npos)
      << "customers do not see engines";
}

}  // namespace
}  // namespace tollgate::dashboard
