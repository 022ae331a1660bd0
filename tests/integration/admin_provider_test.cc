// The methods of the admin API that need a payment provider that stores cards, with the checks of
// admin_methods_test.cc, against a provider that speaks Stripe's API.
#include "services/billing/payments/testing/scripted_stripe.h"
#include "tests/integration/admin_calls.h"

namespace tollgate::test {
namespace {

constexpr char kSecret[] = "whsec_scripted";

class AdminProviderTest : public AdminCalls {
 protected:
  void SetUp() override {
    given_key_ = given_.path() + "/key";
    given_secret_ = given_.path() + "/secret";
    WriteFile(given_key_, "sk_test_scripted\n");
    WriteFile(given_secret_, std::string(kSecret) + "\n");
    billing_settings_ = {"payments: {provider: stripe, stripe_secret_key_file: " + given_key_ +
                         ", stripe_webhook_secret_file: " + given_secret_ +
                         ", webhook_listen: \"127.0.0.1:0\", success_url: "
                         "\"https://example.test/\", stripe_base_url: \"" +
                         stripe_.options().base_url + "\"}"};
    AdminCalls::SetUp();
    if (!cluster_) return;
    // Billing opens its payments after its ledger.
    ASSERT_TRUE(WaitUntil(
        [&] { return Admin("GET", "/admin/v1/workspaces/team/paymentMethods", "").status == 200; },
        10'000));
  }

  std::string Make(const std::string& what) override {
    if (what == "payment method") {
      const std::string page =
          Must(Post("workspaces/team/paymentMethods:setup", R"({"requestId":")" + NewId() + "\"}"),
               "setupUrl");
      const std::string card = stripe_.SaveCard(page);
      Deliver();
      EXPECT_TRUE(WaitUntil([&] { return Cards().find(card) != std::string::npos; }, 10'000, 20));
      return card;
    }
    if (what == "paused reload") {  // the workspace has no card
      const std::string workspace = AdminCalls::Make("workspace");
      const std::string path = "/admin/v1/workspaces/" + workspace + "/autoReload";
      const auto reload = [&] { return Admin("GET", path, "").json(); };
      EXPECT_EQ(Admin("PATCH", path + "?request_id=" + NewId(),
                      R"({"enabled":true,"thresholdUsd":"5","amountUsd":"10",)"
                      R"("monthlyCeilingUsd":"100"})")
                    .status,
                200);
      // Spending triggers a check of the balance at once.
      Must(Post("workspaces/" + workspace + "/creditGrants?request_id=" + NewId(),
                R"({"amountUsd":"1"})"));
      EXPECT_TRUE(WaitUntil(
          [&] {
            MakeRequest("0123456789ab", workspace);
            return reload()["state"].str() == "AUTO_RELOAD_STATE_PAUSED";
          },
          20'000, 200))
          << reload().Dump();
      // Enough credit that it is not paused again after it is resumed.
      Must(Post("workspaces/" + workspace + "/creditGrants?request_id=" + NewId(),
                R"({"amountUsd":"10"})"));
      return workspace;
    }
    return AdminCalls::Make(what);
  }

  std::string Cards() { return Admin("GET", "/admin/v1/workspaces/team/paymentMethods", "").body; }
  // Delivers the provider's events to its webhook.
  void Deliver() {
    const Json addresses =
        Json::Parse(ReadFile(cluster_->dir() + "/allinone.addresses")).value_or(Json());
    const std::string address = addresses["billing_webhooks"].str();
    const int port = std::atoi(address.substr(address.rfind(':') + 1).c_str());
    for (const auto& event : stripe_.TakeEvents()) {
      const std::string signature =
          billing::payments::ScriptedStripe::Sign(kSecret, NowUs() / 1'000'000, event.body);
      const HttpResponse taken =
          Http(port, "POST", "/webhooks/stripe",
               {{"stripe-signature", signature}, {"content-type", "application/json"}}, event.body);
      EXPECT_EQ(taken.status, 200) << taken.body;
    }
  }

  TempDir given_;
  std::string given_key_, given_secret_;
  billing::payments::ScriptedStripe stripe_;
};
INSTANTIATE_TEST_SUITE_P(Stores, AdminProviderTest, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

TEST_P(AdminProviderTest, ChangesAreAuditedAndDoneOnceAndListsHavePages) {
  int rows = 0;
  for (const MethodDescriptor* method : Methods()) {
    const MethodRow* row = RowOf(NameOf(*method));
    if (row == nullptr || !row->provider) continue;
    CheckSuccess(*method, *row);
    if (!row->items.empty()) CheckPages(*method, *row);
    ++rows;
  }
  EXPECT_EQ(rows, 5);
}

}  // namespace
}  // namespace tollgate::test
