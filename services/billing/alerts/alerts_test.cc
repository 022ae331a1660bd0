#include "services/billing/alerts/alerts.h"

#include <gtest/gtest.h>

#include "services/billing/alerts/testing/alert_world.h"

namespace tollgate::billing::alerts {
namespace {

class AlertsTest : public AlertTest {
 protected:
  // Starts a new ledger, since alerts must listen from its start.
  Result<void> Start(AlertsOptions options) {
    ledger_->Stop();
    LedgerService::Options ledger;
    ledger.group_commit.call_timeout_ms = 60'000;  // the machine may be busy
    ledger.sql.url = url_;
    alerts_.reset();
    ledger_ = std::make_unique<LedgerService>(ledger, SystemClock::Get());
    options.sql.url = url_;
    alerts_ = std::make_unique<Alerts>(std::move(options), SystemClock::Get(), *ledger_);
    if (auto started = ledger_->Start(); !started.ok()) return started;
    return alerts_->Start();
  }
  void TearDown() override {
    if (alerts_) alerts_->Stop();
    AlertTest::TearDown();
  }
  AlertsOptions Options() {
    AlertsOptions options;
    options.engine.mail = {smtp_.url(), "", "", "billing@gate.example"};
    options.engine.allow_private = true;
    return options;
  }
  bool Eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 12'000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  std::unique_ptr<Alerts> alerts_;
};
INSTANTIATE_TEST_SUITE_P(All, AlertsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(AlertsTest, AWorkspaceThatSpendsIsToldWithoutASweepAndNoSecretIsLogged) {
  ::testing::internal::CaptureStderr();
  auto options = Options();
  options.sweep_us = 2'000'000;
  ASSERT_TRUE(Start(options).ok());
  ASSERT_TRUE(Eventually([&] { return alerts_->open() && ledger_->Ready(); }));
  Add(100);
  SettingChange change;
  change.emails = {"ann@example.com"};
  change.low_balance_nano_usd = 10 * kNanoPerUsd;
  ASSERT_TRUE(alerts_->admin().Update("acme", change, "t").ok());
  auto webhook = alerts_->admin().CreateWebhook("acme", hooks_.url(), "r1", "ann");
  ASSERT_TRUE(webhook.ok());
  hooks_.Answer({500});
  Spend(95);
  EXPECT_TRUE(Eventually([&] { return !smtp_.mails().empty() && !hooks_.requests().empty(); }));
  alerts_->Stop();
  ledger_->Stop();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("a notice is due"), std::string::npos) << log;
  for (const std::string& secret : {webhook->secret, std::string("v1="), std::string("ann@")}) {
    EXPECT_EQ(log.find(secret), std::string::npos) << secret;
  }
}

TEST_P(AlertsTest, WrongSettingsAreRefusedAtTheStart) {
  const auto refused = [&](const std::function<void(AlertsOptions&)>& change) {
    AlertsOptions options = Options();
    change(options);
    const bool ok = Start(std::move(options)).ok();
    alerts_->Stop();
    return !ok;
  };
  EXPECT_TRUE(refused([](AlertsOptions& o) { o.engine.mail.from = ""; }));
  EXPECT_TRUE(refused([](AlertsOptions& o) { o.engine.mail.from = "a@b.c\r\nBcc: x@y.z"; }));
  EXPECT_TRUE(refused([](AlertsOptions& o) { o.engine.mail.url = "http://127.0.0.1:25"; }));
  EXPECT_TRUE(refused([](AlertsOptions& o) { o.engine.mail.user = "u"; }));
  EXPECT_TRUE(refused([](AlertsOptions& o) { o.engine.operator_emails = {"ops"}; }));
  EXPECT_TRUE(refused([](AlertsOptions& o) {
    o.engine.mail = {};
    o.engine.operator_emails = {"ops@gate.example"};
  }));
  EXPECT_TRUE(refused([](AlertsOptions& o) {
    o.engine.mail.user = "u";
    o.smtp_password_file = "/does/not/exist";
  }));
  EXPECT_FALSE(refused([](AlertsOptions&) {}));
}

}  // namespace
}  // namespace tollgate::billing::alerts
