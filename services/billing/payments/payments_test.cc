#include "services/billing/payments/payments.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>

#include <fstream>

#include "common/http/testing/raw_client.h"
#include "services/billing/payments/testing/payment_world.h"

namespace tollgate::billing::payments {
namespace {

constexpr char kKeyInFile[] = "sk_test_scripted";

class PaymentsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/tollgate-payments-service-" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/key") << kKeyInFile << "\n";
    std::ofstream(folder_ + "/webhook") << "whsec_new\n" << kTestSecret << "\n";
    LedgerService::Options options;
    options.group_commit.call_timeout_ms = 60'000;  // the machine may be busy
    options.sql.url = "sqlite:" + folder_ + "/billing.db";
    ledger_ = std::make_unique<LedgerService>(options, SystemClock::Get());
    stripe_.SetNow(SystemClock::Get().WallUs() / 1'000'000);
    loops_.Start();
  }
  void TearDown() override {
    if (payments_) payments_->Stop();
    ledger_->Stop();
    loops_.Stop();
    std::filesystem::remove_all(folder_);
  }
  PaymentsOptions Options() {
    PaymentsOptions options;
    options.sql.url = "sqlite:" + folder_ + "/billing.db";
    options.provider = "stripe";
    options.secret_key_file = folder_ + "/key";
    options.webhook_secret_file = folder_ + "/webhook";
    options.webhook_listen = "127.0.0.1:0";
    options.stripe = stripe_.options();
    options.stripe.secret_key = "";
    options.sweep_us = 3'600'000'000;
    return options;
  }
  Result<void> Start(PaymentsOptions options) {
    payments_ = std::make_unique<Payments>(std::move(options), SystemClock::Get(), *ledger_);
    if (auto started = ledger_->Start(); !started.ok()) return started;
    return payments_->Start(loops_);
  }
  bool Eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 12'000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  void SaveCard(const std::string& workspace) {
    ASSERT_TRUE(payments_->engine().EnsureCustomer(workspace).ok());
    ASSERT_TRUE(payments_->engine()
                    .store()
                    .Run(workspace, 1,
                         [&](WorkspaceTx& tx) {
                           return tx.Put(PaymentMethod{workspace, "pm_1", "stripe", "visa", "4242",
                                                       "2029-04", 1});
                         })
                    .ok());
  }
  // Posts a webhook and returns the status line of the response.
  std::string Post(const std::string& body, const std::string& signature) {
    const std::string address = payments_->webhook_address();
    http::testing::RawClient client(
        static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    client.Write("POST /webhooks/stripe HTTP/1.1\r\nHost: x\r\nStripe-Signature: " + signature +
                 "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
                 std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.ReadToEnd().substr(0, 12);
  }

  std::string folder_;
  ScriptedStripe stripe_;
  LoopPool loops_{1};
  std::unique_ptr<LedgerService> ledger_;
  std::unique_ptr<Payments> payments_;
};

TEST_F(PaymentsTest, AWebhookOverHttpPostsTheCreditAtOnceAndNoSecretIsLogged) {
  ::testing::internal::CaptureStderr();
  ASSERT_TRUE(Start(Options()).ok());
  auto made = payments_->admin().Create("acme", 10 * kNanoPerUsd, "r1", "ann");
  ASSERT_TRUE(made.ok()) << made.error().message;
  stripe_.PayPage(made->checkout_id);
  const std::string body = stripe_.TakeEvents().front().body;
  const int64_t now = SystemClock::Get().WallUs() / 1'000'000;
  EXPECT_EQ(Post(body, ScriptedStripe::Sign("whsec_other", now, body)), "HTTP/1.1 400");
  EXPECT_EQ(Post(body, ScriptedStripe::Sign(kTestSecret, now, body)), "HTTP/1.1 200");
  EXPECT_EQ(Post(std::string(kMaxWebhookBytes + 1, 'x'), "t=1,v1=0"), "HTTP/1.1 400");
  EXPECT_TRUE(Eventually([&] { return payments_->admin().Get("acme", made->id)->credited; }));
  // A provider that refuses the key, and one that is unreachable.
  stripe_.SetFaults({.lost_after = 500, .error_before = 500});
  static_cast<void>(payments_->admin().Create("acme", 10 * kNanoPerUsd, "r2", "ann"));
  payments_->Stop();
  ledger_->Stop();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("signature"), std::string::npos) << "the refused webhook is logged";
  for (const char* secret : {kKeyInFile, "whsec_new", kTestSecret, "v1=", "Bearer"}) {
    EXPECT_EQ(log.find(secret), std::string::npos) << secret;
  }
}

TEST_F(PaymentsTest, AWorkspaceThatSpendsIsReloadedWithoutASweep) {
  ASSERT_TRUE(Start(Options()).ok());
  LedgerServicePort port(*ledger_);
  ASSERT_TRUE(port.Submit(AddCredit{"acme", "c1", 20 * kNanoPerUsd, false, "t", "t"})->ok);
  SaveCard("acme");
  ASSERT_TRUE(
      payments_->admin()
          .UpdateReload("acme", {true, 5 * kNanoPerUsd, 10 * kNanoPerUsd, 100 * kNanoPerUsd}, "t")
          .ok());
  // The ledger reports commits only once a workspace has auto-reload, so repeat until it does.
  bool low = false;
  EXPECT_TRUE(Eventually([&] {
    low = SpendOn(port, "acme", low ? kNanoPerCent : 16 * kNanoPerUsd) || low;
    return port.ReadBalance("acme")->paid_nano_usd > 10 * kNanoPerUsd;
  }));
  EXPECT_TRUE(Eventually([&] { return !payments_->admin().GetReload("acme")->running(); }));
  EXPECT_EQ(stripe_.intents().size(), 1u);
}

// Requests that lack credit meanwhile are told that it may arrive.
TEST_F(PaymentsTest, TheLedgerKnowsWhichWorkspacesAreBeingReloaded) {
  ASSERT_TRUE(Start(Options()).ok());
  LedgerServicePort port(*ledger_);
  SaveCard("acme");
  ASSERT_TRUE(
      payments_->admin()
          .UpdateReload("acme", {true, 5 * kNanoPerUsd, 10 * kNanoPerUsd, 100 * kNanoPerUsd}, "t")
          .ok());
  EXPECT_FALSE(ledger_->reloading().Has("acme"));
  stripe_.SetFaults({.lost_before = 1'000'000});
  ASSERT_TRUE(port.Submit(AddCredit{"acme", "c1", kNanoPerUsd, false, "t", "t"})->ok);
  EXPECT_TRUE(Eventually([&] {
    (void)SpendOn(port, "acme", kNanoPerCent);
    return ledger_->reloading().Has("acme");
  }));
  EXPECT_FALSE(ledger_->reloading().Has("other"));
  stripe_.SetFaults({});
  EXPECT_TRUE(Eventually([&] { return !ledger_->reloading().Has("acme"); }));
}

TEST_F(PaymentsTest, StopDoesNotWaitForAProviderThatHangs) {
  // Accepts connections but never answers.
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent, 64), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  PaymentsOptions options = Options();
  options.stripe.base_url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  options.stripe.timeout_ms = 120'000;
  ASSERT_TRUE(Start(std::move(options)).ok());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(payments_->engine()
                    .store()
                    .Run("acme", 1,
                         [&](WorkspaceTx& tx) {
                           Payment payment;
                           payment.workspace = "acme";
                           payment.id = "p" + std::to_string(i);
                           payment.provider = "stripe";
                           payment.state = PaymentState::kSubmitted;
                           payment.provider_id = "pi_" + std::to_string(i);
                           payment.amount_nano_usd = 10 * kNanoPerUsd;
                           payment.check_us = payment.created_us = 1;
                           return tx.Put(payment);
                         })
                    .ok());
  }
  payments_->Wake();
  // Admin calls wait in the queue behind eight that hang.
  std::atomic<int> ran = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(payments_->pool().Submit([&] {
      static_cast<void>(payments_->admin().SetupMethod("acme", "s", "ann"));
      ++ran;
    }));
  }
  const int first = accept(silent, nullptr, nullptr);
  ASSERT_GE(first, 0) << "a call is running";
  const auto begin = std::chrono::steady_clock::now();
  payments_->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  EXPECT_EQ(ran, 20) << "each caller gets its answer";
  close(first);
  close(silent);
}

TEST_F(PaymentsTest, WrongSettingsAreRefusedAtTheStart) {
  PaymentsOptions options = Options();
  options.provider = "paypal";
  EXPECT_FALSE(Start(options).ok());
  for (const char* missing : {"key", "webhook"}) {
    ledger_->Stop();
    LedgerService::Options ledger;
    ledger.sql.url = "sqlite:" + folder_ + "/billing.db";
    payments_.reset();
    ledger_ = std::make_unique<LedgerService>(ledger, SystemClock::Get());
    options = Options();
    std::ofstream(folder_ + "/empty") << " \n";
    (std::string(missing) == "key" ? options.secret_key_file : options.webhook_secret_file) =
        folder_ + "/empty";
    EXPECT_FALSE(Start(options).ok()) << missing;
  }
}

}  // namespace
}  // namespace tollgate::billing::payments
