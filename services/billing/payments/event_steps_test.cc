#include <gtest/gtest.h>

#include <functional>

#include "services/billing/payments/testing/payment_world.h"

namespace tollgate::billing::payments {
namespace {

class EventStepsTest : public PaymentTest {};
INSTANTIATE_TEST_SUITE_P(All, EventStepsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(EventStepsTest, TwoReplicasWorkOnAnEventOnceAndTheSecondDoesNotAskTheProvider) {
  auto other = Make();
  std::function<void(std::string_view)> at;
  PaymentEngine::Options options;
  options.survives = [&at](std::string_view point) {
    if (at) at(point);
    return true;
  };
  auto replica = Make(std::move(options));
  Buy(*replica, "r1");
  DeliverAll(*replica);
  const auto due = *replica->store.DueEvents(INT64_MAX, 10);
  ASSERT_EQ(due.size(), 2u);
  const int before = stripe_.calls();
  bool met = false;
  at = [&](std::string_view point) {
    if (point != "event_found" || met) return;
    met = true;
    // Another replica has read the same list and also looks for due events.
    other->engine.StepEvent(due[0]);
    for (const ProviderEvent& event : *other->store.DueEvents(clock_.WallUs(), 10)) {
      EXPECT_NE(event.id, due[0].id);
    }
  };
  replica->engine.StepEvent(due[0]);
  EXPECT_TRUE(met);
  EXPECT_EQ(stripe_.calls() - before, 1);
  other->engine.StepEvent(due[0]);
  EXPECT_EQ(stripe_.calls() - before, 1) << "processed only once";
  EXPECT_EQ(Topups("acme"), 1);
}

TEST_P(EventStepsTest, AReplicaThatCrashesWithAnEventLeavesItToAnother) {
  PaymentEngine::Options options;
  options.survives = [](std::string_view point) { return point != "after_event"; };
  auto crashing = Make(std::move(options));
  auto other = Make();
  Buy(*other, "r1");
  stripe_.TakeEvents();
  other->engine.RunOnce();
  stripe_.Dispute(stripe_.intents().front().id);
  DeliverAll(*other);
  crashing->engine.RunOnce();
  const int before = stripe_.calls("/v1/disputes/");
  other->engine.RunOnce();
  EXPECT_EQ(stripe_.calls("/v1/disputes/"), before) << "the claim is still valid";
  Advance(61);
  other->engine.RunOnce();
  EXPECT_EQ(stripe_.calls("/v1/disputes/"), before + 1);
  EXPECT_TRUE(other->store.DueEvents(INT64_MAX, 10)->empty());
  EXPECT_EQ(Paid("acme"), 0);
}

TEST_P(EventStepsTest, ADeletedCardDoesNotReturnWithARepeatedEvent) {
  auto replica = Make();
  auto url = replica->admin.SetupMethod("acme", "r1", "ann");
  ASSERT_TRUE(url.ok());
  const std::string card = stripe_.SaveCard(url->substr(url->rfind('/') + 1));
  const auto saved = stripe_.TakeEvents();
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(Deliver(*replica, saved[0].body), 200);
  replica->engine.RunOnce();
  ASSERT_EQ(replica->admin.Methods("acme")->size(), 1u);
  ASSERT_TRUE(replica->admin.DeleteMethod("acme", card, "ann").ok());
  // The check without a webhook is due now, and the provider sends the event again under another
  // id.
  std::string again = saved[0].body;
  again.replace(again.find("evt_"), 4, "evt_9");
  EXPECT_EQ(Deliver(*replica, again), 200);
  Advance(60);
  replica->engine.RunOnce();
  EXPECT_TRUE(replica->admin.Methods("acme")->empty());
  EXPECT_EQ(replica->admin.DeleteMethod("acme", card, "ann").error().reason, "NOT_FOUND");
  EnableReload(*replica, "acme");
  replica->engine.RunOnce();
  EXPECT_EQ(replica->admin.GetReload("acme")->pause_reason, "no_payment_method");
}

}  // namespace
}  // namespace tollgate::billing::payments
