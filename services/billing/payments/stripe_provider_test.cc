// Checks the form of every call to Stripe with stripe-mock (./dev parts stripe-mock), which refuses
// missing, unknown and ill-typed parameters. It has no state: its answers are fixtures.
// testing/scripted_stripe.h is used to test behaviour.
#include "services/billing/payments/stripe_provider.h"

#include <gtest/gtest.h>

#include <thread>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "common/http/http_call.h"
#include "tests/support/process.h"

namespace tollgate::billing::payments {
namespace {

std::string MockFile() {
  const char* parts = std::getenv("TOLLGATE_PARTS");
  const char* home = std::getenv("HOME");
  const std::string folder =
      parts ? parts : std::string(home ? home : "") + "/.cache/tollgate/parts";
  return folder + "/stripe-mock-v0.203.0/stripe-mock";
}

class StripeMockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::ifstream(MockFile())) GTEST_SKIP() << "install it with ./dev parts stripe-mock";
    const std::string log = folder_.path() + "/log";
    mock_ = std::make_unique<test::Process>(
        "stripe-mock",
        std::vector<std::string>{MockFile(), "-http-port", "0", "-strict-version-check"}, log);
    ASSERT_TRUE(mock_->Start());
    options_.base_url.clear();
    constexpr std::string_view kSays = "Listening for HTTP at address: ";
    for (int i = 0; i < 12'000 && options_.base_url.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::stringstream text;
      text << std::ifstream(log).rdbuf();
      const size_t at = text.str().find(kSays);
      const size_t end = text.str().find('\n', at);
      if (at == std::string::npos || end == std::string::npos) continue;
      const std::string address = text.str().substr(at + kSays.size(), end - at - kSays.size());
      options_.base_url = "http://127.0.0.1:" + address.substr(address.rfind(':') + 1);
    }
    ASSERT_NE(options_.base_url, "");
    options_.secret_key = "sk_test_form";
    options_.success_url = options_.cancel_url = "https://example.test/";
    provider_ = MakeStripeProvider(options_);
  }

  // stripe-mock's fixtures belong to none of our payments, so an unusable answer shows that the
  // call itself was accepted. A refused form is kRefused, or a decline with Stripe's type.
  template <typename T>
  static void ExpectAccepted(const ProviderResult<T>& result) {
    if (result.ok()) return;
    EXPECT_EQ(result.error().kind, ProviderError::Kind::kUnknown)
        << result.error().code << ": " << result.error().message;
    EXPECT_TRUE(result.error().code.starts_with("another_")) << result.error().code;
  }

  test::TempDir folder_;
  StripeOptions options_;
  std::unique_ptr<test::Process> mock_;
  std::unique_ptr<PaymentProvider> provider_;
};

TEST_F(StripeMockTest, EveryCallHasTheFormThatStripeAccepts) {
  PaymentRef page{"acme", "p1", 1050, "cus_1", "", "", "", 1'763'700'000'000'000};
  PaymentRef charge = page;
  charge.method = "pm_card_visa";
  auto customer = provider_->CreateCustomer("acme");
  ASSERT_TRUE(customer.ok()) << customer.error().code;
  EXPECT_TRUE(customer->starts_with("cus_"));
  auto checkout = provider_->CreateCheckout(page);
  ASSERT_TRUE(checkout.ok()) << checkout.error().code;
  EXPECT_TRUE(checkout->id.starts_with("cs_"));
  auto setup = provider_->CreateSetup("acme", "cus_1", "s1");
  ASSERT_TRUE(setup.ok()) << setup.error().code;
  ExpectAccepted(provider_->GetSetup(setup->id));
  auto charged = provider_->Charge(charge);
  ASSERT_FALSE(charged.ok()) << charged->reason;
  EXPECT_EQ(charged.error().code, "another_payment") << "the fixture has other metadata";
  ExpectAccepted(provider_->Find(charge));
  PaymentRef known = charge;
  known.provider_id = "pi_1";
  ExpectAccepted(provider_->Find(known));
  ExpectAccepted(provider_->Cancel(known));
  PaymentRef open = page;
  open.checkout_id = checkout->id;
  ExpectAccepted(provider_->Find(open));
  ExpectAccepted(provider_->Cancel(open));
  auto refund = provider_->Refund({"r1", "acme", known, 500});
  ASSERT_TRUE(refund.ok()) << refund.error().code;
  EXPECT_TRUE(refund->id.starts_with("re_"));
  ExpectAccepted(provider_->GetRefund("re_1"));
  ExpectAccepted(provider_->GetDispute("dp_1"));
  EXPECT_TRUE(provider_->ListRefunds("pi_1").ok());
  EXPECT_TRUE(provider_->ListDisputes(0, 1'763'700'000'000'000).ok());
  auto list = provider_->ListCharges(0, 1'763'700'000'000'000, "");
  ASSERT_TRUE(list.ok()) << list.error().code;
  EXPECT_FALSE(list->charges.empty());
  EXPECT_TRUE(provider_->ListCharges(0, 1'763'700'000'000'000, "pi_1").ok());
  EXPECT_TRUE(provider_->DetachMethod("pm_1").ok());
}

TEST_F(StripeMockTest, AWrongFormOrVersionIsRefusedByTheMock) {
  http::HttpCall call;
  call.method = "POST";
  call.url = options_.base_url + "/v1/payment_intents";
  call.bearer = options_.secret_key;
  call.headers.emplace_back("Stripe-Version", kStripeVersion);
  call.form = {{"amount", "many"}, {"currency", "usd"}};
  EXPECT_EQ(Send(call).status, 400);
  call.form = {{"amount", "1050"}, {"currency", "usd"}};
  EXPECT_EQ(Send(call).status, 200);
  call.headers.front().second = "2020-01-01";
  EXPECT_EQ(Send(call).status, 400);
}

TEST(StripeProviderTest, AnUnreachableProviderHasSurelyDoneNothing) {
  StripeOptions options;
  options.base_url = "http://127.0.0.1:1";  // no server listens there
  options.secret_key = "sk_test";
  auto made = MakeStripeProvider(options)->CreateCustomer("acme");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ProviderError::Kind::kNotDone);
}

}  // namespace
}  // namespace tollgate::billing::payments
