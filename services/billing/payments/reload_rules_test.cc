// When auto-reload may charge a card (docs/design/charging.md).
#include "services/billing/payments/reload_rules.h"

#include <gtest/gtest.h>

#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "common/money/money.h"

namespace tollgate::billing::payments {
namespace {

using Kind = Verdict::Kind;

constexpr int64_t kNowUs = 1'763'700'000'000'000;

class MayChargeTest : public ::testing::Test {
 protected:
  MayChargeTest() {
    reload_.enabled = true;
    reload_.threshold_nano_usd = 5 * kNanoPerUsd;
    reload_.amount_nano_usd = 20 * kNanoPerUsd;
    reload_.ceiling_nano_usd = 100 * kNanoPerUsd;
    facts_.ledger.balance.paid_nano_usd = 4 * kNanoPerUsd;
    facts_.card_saved = true;
  }
  Verdict Ask() { return MayCharge(reload_, facts_, {}, kNowUs); }
  void ExpectPause(const std::string& reason, int64_t until_us = 0) {
    const Verdict verdict = Ask();
    EXPECT_EQ(verdict.kind, Kind::kPause);
    EXPECT_EQ(verdict.reason, reason);
    EXPECT_EQ(verdict.until_us, until_us);
  }

  AutoReload reload_;
  ChargeFacts facts_;
};

TEST_F(MayChargeTest, ABalanceBelowTheThresholdIsCharged) {
  EXPECT_EQ(Ask().kind, Kind::kCharge);
  facts_.ledger.balance.paid_nano_usd = 5 * kNanoPerUsd;
  EXPECT_EQ(Ask().kind, Kind::kEnough);
}

TEST_F(MayChargeTest, HoldsDoNotLowerTheBalance) {
  facts_.ledger.balance.paid_nano_usd = 20 * kNanoPerUsd;
  facts_.ledger.balance.held_nano_usd = 19 * kNanoPerUsd;
  EXPECT_EQ(Ask().kind, Kind::kEnough);
}

TEST_F(MayChargeTest, CreditOnItsWayCounts) {
  facts_.on_its_way_nano_usd = kNanoPerUsd;
  EXPECT_EQ(Ask().kind, Kind::kEnough);
}

TEST_F(MayChargeTest, ARefusedCardIsNotCharged) {
  facts_.card_refused = true;
  ExpectPause("card_refused");
}

TEST(RefusalTest, CodesAndAdviceSayWhetherAnotherTryIsAllowed) {
  for (const char* code : {"stolen_card", "lost_card", "pickup_card", "expired_card",
                           "invalid_account", "new_account_information_available", "fraudulent",
                           "do_not_honor (do_not_try_again)", "resource_missing"}) {
    EXPECT_EQ(RefusalOf(code), Refusal::kForGood) << code;
  }
  for (const char* code : {"insufficient_funds", "do_not_honor", "card_declined", "try_again_later",
                           "lost", "processing_error", ""}) {
    EXPECT_EQ(RefusalOf(code), Refusal::kForNow) << code;
  }
  EXPECT_EQ(RefusalOf("authentication_required"), Refusal::kUnconfirmed);
}

TEST_F(MayChargeTest, NothingIsChargedWhileItIsOff) {
  reload_.enabled = false;
  EXPECT_EQ(Ask().kind, Kind::kWait);
}

TEST_F(MayChargeTest, WhatOtherThanSpendingLoweredTheBalancePausesUntilAPersonConfirms) {
  const std::pair<CommandKind, const char*> reasons[] = {
      {CommandKind::kRefund, kPausedByRefund},
      {CommandKind::kChargeback, kPausedByDispute},
      {CommandKind::kDebitAdjustment, kPausedByDebit}};
  for (const auto& [kind, reason] : reasons) {
    facts_.ledger.lowered = {kind, kNowUs - 1};
    reload_.confirmed_us = kNowUs - 2;
    ExpectPause(reason);
    reload_.confirmed_us = kNowUs - 1;
    EXPECT_EQ(Ask().kind, Kind::kCharge);
  }
}

TEST_F(MayChargeTest, CreditThatCouldNotBeSpentIsNotCharged) {
  Balance& balance = facts_.ledger.balance;
  balance.frozen = Freeze::kOperator;
  EXPECT_EQ(Ask().kind, Kind::kWait);
  balance.frozen = Freeze::kNone;
  balance.receivable_nano_usd = 1;
  EXPECT_EQ(Ask().kind, Kind::kWait);
  balance.receivable_nano_usd = 0;
  balance.cap_nano_usd = 0;
  EXPECT_EQ(Ask().kind, Kind::kWait);
  balance.cap_nano_usd = 1;
  EXPECT_EQ(Ask().kind, Kind::kCharge);
}

TEST_F(MayChargeTest, ACardIsRequiredThatNoDisputeConcerns) {
  facts_.card_disputed = true;
  ExpectPause(kPausedByCardDispute);
  facts_.card_saved = false;
  ExpectPause(kPausedWithoutMethod);
}

TEST_F(MayChargeTest, TheCeilingCountsTheOtherChargesOfTheMonth) {
  facts_.month_charged_nano_usd = 80 * kNanoPerUsd;
  EXPECT_EQ(Ask().kind, Kind::kCharge);
  facts_.month_charged_nano_usd += 1;
  ExpectPause(kPausedByCeiling, UtcMonthStartUs(NextMonth(UtcMonth(kNowUs))));
}

TEST_F(MayChargeTest, ThreeChargesAnHourAndTenADay) {
  facts_.sent_us = {kNowUs - 1, kNowUs - 2, kNowUs - kHourUs + 1};
  ExpectPause(kPausedByHour, kNowUs + 1);
  facts_.sent_us[2] = kNowUs - kHourUs;
  EXPECT_EQ(Ask().kind, Kind::kCharge);
  facts_.sent_us.assign(10, kNowUs - kDayUs + 1);
  ExpectPause(kPausedByDay, kNowUs + 1);
}

}  // namespace
}  // namespace tollgate::billing::payments
