// The stand-in keeps answers by idempotency key, as Stripe documents.
#include "services/billing/payments/testing/scripted_stripe.h"

#include <gtest/gtest.h>

namespace tollgate::billing::payments {
namespace {

class ScriptedStripeTest : public ::testing::Test {
 protected:
  ScriptedStripeTest() { stripe_.SetNow(kStart); }
  std::string Charge(int64_t cents = 1000) {
    PaymentRef payment{.workspace = "acme", .id = "p1", .amount_cents = cents, .customer = "cus_1"};
    auto view = provider_->Charge(payment);
    return view.ok() ? view->provider_id : view.error().code;
  }

  static constexpr int64_t kStart = 1'763'700'000;
  ScriptedStripe stripe_;
  std::unique_ptr<PaymentProvider> provider_ = MakeStripeProvider(stripe_.options());
};

TEST_F(ScriptedStripeTest, AnErrorIsRepeatedForADay) {
  stripe_.SetFaults({.error_before = 1000});
  EXPECT_EQ(Charge(), "api_error");
  stripe_.SetFaults({});
  EXPECT_EQ(Charge(), "api_error");
  stripe_.SetNow(kStart + 86'399);
  EXPECT_EQ(Charge(), "api_error");
  EXPECT_TRUE(stripe_.intents().empty());
  stripe_.SetNow(kStart + 86'400);
  EXPECT_EQ(Charge(), stripe_.intents().at(0).id);
}

TEST_F(ScriptedStripeTest, AnErrorAfterTheWorkIsRepeated) {
  stripe_.SetFaults({.error_after = 1000});
  EXPECT_EQ(Charge(), "api_error");
  stripe_.SetFaults({});
  EXPECT_EQ(Charge(), "api_error");
  EXPECT_EQ(stripe_.intents().size(), 1u);
}

TEST_F(ScriptedStripeTest, TheKeyIsLookedAtBeforeAFaultOfTheWork) {
  const std::string made = Charge();
  stripe_.SetFaults({.error_before = 1000});
  EXPECT_EQ(Charge(), made);
}

TEST_F(ScriptedStripeTest, OtherParametersUnderTheSameKeyAreRefused) {
  Charge();
  EXPECT_EQ(Charge(2000), "idempotency_error");
  EXPECT_EQ(stripe_.intents().size(), 1u);
}

TEST_F(ScriptedStripeTest, ACallThatDidNotReachTheWorkIsNotKept) {
  stripe_.SetFaults({.busy = 1000});
  EXPECT_EQ(Charge(), "rate_limit");
  stripe_.SetFaults({.lost_before = 1000});
  EXPECT_EQ(Charge(), "no_answer");
  stripe_.SetFaults({});
  EXPECT_EQ(Charge(), stripe_.intents().at(0).id);
}

TEST_F(ScriptedStripeTest, ALateChargeAppearsAfterItsError) {
  stripe_.SetFaults({.error_late = 1000});
  EXPECT_EQ(Charge(), "api_error");
  stripe_.SetNow(kStart + ScriptedStripe::kLateSeconds - 1);
  EXPECT_TRUE(stripe_.intents().empty());
  stripe_.SetNow(kStart + ScriptedStripe::kLateSeconds);
  EXPECT_EQ(stripe_.intents().size(), 1u);
}

}  // namespace
}  // namespace tollgate::billing::payments
