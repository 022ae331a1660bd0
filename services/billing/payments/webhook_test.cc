#include "services/billing/payments/webhook.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "services/billing/payments/testing/payment_world.h"

namespace tollgate::billing::payments {
namespace {

class WebhookTest : public PaymentTest {};
INSTANTIATE_TEST_SUITE_P(All, WebhookTest, ::testing::Values(sql::Dialect::kSqlite), Dialect);

std::string Event(const std::string& id, const std::string& type, const std::string& payment) {
  return R"({"id":")" + id + R"(","type":")" + type +
         R"(","data":{"object":{"id":"pi_forged","status":"succeeded","amount_received":1000,)" +
         R"("currency":"usd","metadata":{"tollgate_workspace":"acme","tollgate_payment":")" +
         payment + R"("}}}})";
}

TEST_P(WebhookTest, OnlySignedEventsAreStoredAndEachOnce) {
  auto replica = Make();
  const std::string body = Event("evt_1", "payment_intent.succeeded", "p");
  EXPECT_EQ(Deliver(*replica, body, "t=1,v1=00"), 400);
  EXPECT_EQ(Deliver(*replica, body, ""), 400);
  const int64_t old = clock_.WallUs() / 1'000'000 - 301;
  EXPECT_EQ(Deliver(*replica, body, ScriptedStripe::Sign(kTestSecret, old, body)), 400);
  EXPECT_EQ(Deliver(*replica, body + " ", ScriptedStripe::Sign(kTestSecret, old + 301, body)), 400)
      << "the exact bytes are signed";
  EXPECT_TRUE(replica->store.DueEvents(INT64_MAX, 10)->empty());
  EXPECT_EQ(Deliver(*replica, body), 200);
  EXPECT_EQ(Deliver(*replica, body), 200);
  EXPECT_EQ(replica->store.DueEvents(INT64_MAX, 10)->size(), 1u);
  for (const char* text : {"", "[]", "{}", R"({"id":1})", R"({"id":"e","type":""})"}) {
    EXPECT_EQ(Deliver(*replica, text), 400) << text;
  }
  EXPECT_EQ(Deliver(*replica, std::string(kMaxWebhookBytes + 1, ' ')), 400);
}

TEST_P(WebhookTest, AFloodOfForgedWebhooksLeavesOneLineAMinute) {
  auto replica = Make();
  const std::string body = Event("evt_1", "payment_intent.succeeded", "p");
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Deliver(*replica, body, "t=1,v1=00"), 400);
  Advance(61);
  EXPECT_EQ(Deliver(*replica, body, "t=1,v1=00"), 400);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log.substr(0, 1000);
  EXPECT_NE(log.find("\"since_the_last_line\":1000"), std::string::npos) << log;
}

TEST_P(WebhookTest, DoneEventsAreRemovedAndWaitingOnesKept) {
  auto replica = Make();
  EXPECT_EQ(Deliver(*replica, Event("evt_1", "payment_intent.succeeded", "p1")), 200);
  replica->engine.RunOnce();
  Advance(86'400);
  EXPECT_EQ(Deliver(*replica, Event("evt_2", "payment_intent.succeeded", "p2")), 200);
  ASSERT_TRUE(replica->store.PruneEvents(clock_.WallUs() + 1).ok());
  EXPECT_EQ(replica->store.DueEvents(INT64_MAX, 10)->size(), 1u);
  auto again = replica->store.DueEvents(INT64_MAX, 10)->front();
  EXPECT_EQ(again.id, "evt_2");
  again.id = "evt_1";
  EXPECT_TRUE(*replica->store.AddEvent(again)) << "evt_1 was removed";
}

TEST_P(WebhookTest, AnEventIsNeverBelievedOnlyAsked) {
  auto replica = Make();
  auto made = replica->admin.Create("acme", 10 * kNanoPerUsd, "r1", "ann");
  ASSERT_TRUE(made.ok());
  // Signed events, but the page is not paid.
  EXPECT_EQ(Deliver(*replica, Event("evt_1", "payment_intent.succeeded", made->id)), 200);
  EXPECT_EQ(Deliver(*replica, Event("evt_2", "payment_intent.succeeded", "unknown")), 200);
  Advance(10);
  replica->engine.RunOnce();
  EXPECT_EQ(replica->admin.Get("acme", made->id)->state, PaymentState::kSubmitted);
  EXPECT_EQ(Paid("acme"), 0);
}

}  // namespace
}  // namespace tollgate::billing::payments
