#include "services/billing/alerts/alert_engine.h"

#include <gtest/gtest.h>

#include <map>

#include "common/base/crypto.h"
#include "common/base/seal.h"
#include "common/base/time_units.h"
#include "services/billing/alerts/testing/alert_world.h"

namespace tollgate::billing::alerts {
namespace {

using Kinds = std::map<std::string, int>;

SettingChange MailAt(int64_t usd) {
  SettingChange change;
  change.emails = {"ann@example.com"};
  change.low_balance_nano_usd = usd * kNanoPerUsd;
  return change;
}

class AlertEngineTest : public AlertTest {};
INSTANTIATE_TEST_SUITE_P(All, AlertEngineTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(AlertEngineTest, TwoReplicasMakeOneNoticePerCrossing) {
  auto one = Make();
  auto two = Make();
  Add(100);
  Set(*one, MailAt(10));
  for (int crossing = 1; crossing <= 20; ++crossing) {
    Spend(95);
    std::vector<std::thread> threads;
    for (Replica* replica : {one.get(), two.get(), one.get(), two.get()}) {
      threads.emplace_back([replica] { replica->engine.Check("acme"); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(Outbox(), (Kinds{{"low_balance", crossing}}));
    Add(95);
    two->engine.Check("acme");
  }
}

TEST_P(AlertEngineTest, ABalanceAroundTheLimitIsToldOnceAndATopUpArmsIt) {
  auto replica = Make();
  Add(100);
  Set(*replica, MailAt(50));
  Spend(51);
  for (int i = 0; i < 5; ++i) replica->engine.Check("acme");
  EXPECT_EQ(Outbox(), (Kinds{{"low_balance", 1}}));
  // Credit returned by a hold does not count as a top-up.
  Sql("UPDATE wallet SET paid = paid + $1 WHERE workspace = 'acme'", {2 * kNanoPerUsd});
  replica->engine.Check("acme");
  Sql("UPDATE wallet SET paid = paid - $1 WHERE workspace = 'acme'", {2 * kNanoPerUsd});
  replica->engine.Check("acme");
  EXPECT_EQ(Outbox(), (Kinds{{"low_balance", 1}}));
  Add(2);  // 51: above the limit, below 1.2 times it
  replica->engine.Check("acme");
  Spend(2);
  replica->engine.Check("acme");
  EXPECT_EQ(Outbox(), (Kinds{{"low_balance", 2}}));
  Set(*replica, MailAt(70));
  replica->engine.Check("acme");
  EXPECT_EQ(Outbox(), (Kinds{{"low_balance", 3}})) << "a new limit arms the alert";
}

TEST_P(AlertEngineTest, CapReloadAndBooksAreToldToWhomTheyConcern) {
  auto replica = Make();
  Add(100);
  Set(*replica, MailAt(0));
  const int32_t month = UtcMonth(clock_.WallUs());
  Sql("UPDATE wallet SET cap = $1 WHERE workspace = 'acme'", {10 * kNanoPerUsd});
  Sql("INSERT INTO cap_month (shard, workspace, month, spent, held) VALUES ($1, 'acme', $2, $3, 0)",
      {LedgerShard("acme"), month, 8 * kNanoPerUsd});
  payments::PaymentStore store(*database_);
  const auto reload = [&](payments::ReloadState state) {
    payments::AutoReload row;
    row.workspace = "acme";
    row.enabled = true;
    row.state = state;
    row.pause_reason = "card_declined";
    ASSERT_TRUE(store.Run("acme", 1, [&](payments::WorkspaceTx& tx) { return tx.Put(row); }).ok());
  };
  reload(payments::ReloadState::kPaused);
  for (int i = 0; i < 3; ++i) replica->engine.Check("acme");
  EXPECT_EQ(Outbox(), (Kinds{{"cap_percent", 2}, {"reload_paused", 1}}));
  reload(payments::ReloadState::kIdle);
  replica->engine.Check("acme");
  reload(payments::ReloadState::kPaused);
  replica->engine.Check("acme");
  EXPECT_EQ(Outbox()["reload_paused"], 2);
  Sql("UPDATE wallet SET frozen = 3 WHERE workspace = 'acme'", {});
  auto watched = replica->store.Watched();
  ASSERT_TRUE(watched.ok());
  EXPECT_EQ(*watched, std::vector<std::string>{"acme"});
  for (int i = 0; i < 3; ++i) replica->engine.Check("acme");
  EXPECT_EQ(Outbox()["books_disagree"], 1);
  while (replica->engine.DeliverDue() > 0) {
  }
  for (const mail::SmtpListener::Mail& mail : smtp_.mails()) {
    const bool books = mail.text.find("Subject: Ledger mismatch") != std::string::npos;
    EXPECT_EQ(mail.to.front(), books ? "<ops@gate.example>" : "<ann@example.com>");
  }
  EXPECT_EQ(smtp_.mails().size(), 5u);
}

// Rule: the customer is told of each step of a dispute, and when requests are refused by a freeze.
TEST_P(AlertEngineTest, ADisputeAndTheFreezeThatFollowsAreToldByMail) {
  auto replica = Make();
  Add(50);
  Set(*replica, MailAt(1));
  const int64_t now_us = clock_.WallUs();
  const auto dispute = [&](const std::string& id, payments::DisputeView::State state,
                           int64_t opened_us, int64_t closed_us) {
    payments::Dispute row;
    row.workspace = "acme";
    row.id = id;
    row.payment = "payment-of-" + id;
    row.state = state;
    row.amount_nano_usd = 12 * kNanoPerUsd;
    row.taken = true;
    row.opened_us = opened_us;
    row.closed_us = closed_us;
    payments::PaymentStore store(*database_);
    ASSERT_TRUE(store.Run("acme", 1, [&](payments::WorkspaceTx& tx) { return tx.Put(row); }).ok());
  };
  using State = payments::DisputeView::State;
  dispute("du_old", State::kLost, now_us - 9 * kDayUs, now_us - 8 * kDayUs);
  dispute("du_1", State::kOpen, now_us, 0);
  Sql("UPDATE wallet SET frozen = 2 WHERE workspace = 'acme'", {});
  for (int i = 0; i < 3; ++i) replica->engine.Check("acme");
  EXPECT_EQ(Outbox(), (Kinds{{"dispute_opened", 1}, {"frozen", 1}}));
  dispute("du_1", State::kWon, now_us, now_us + 1);
  dispute("du_2", State::kLost, now_us - 1, now_us + 1);
  for (int i = 0; i < 3; ++i) replica->engine.Check("acme");
  EXPECT_EQ(Outbox(),
            (Kinds{{"dispute_opened", 1}, {"dispute_won", 1}, {"dispute_lost", 1}, {"frozen", 1}}));
  while (replica->engine.DeliverDue() > 0) {
  }
  std::string all;
  for (const mail::SmtpListener::Mail& mail : smtp_.mails()) all += mail.text;
  for (const char* part :
       {"Payment disputed in workspace acme", "payment-of-du_1 of $12", "Dispute won in workspace",
        "Dispute lost in workspace", "Requests refused in workspace", "Add the credit"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part;
  }
}

TEST_P(AlertEngineTest, TheBanksConfirmationIsAskedForWithALinkToItsPage) {
  auto replica = Make();
  Add(100);
  Set(*replica, MailAt(0));
  payments::PaymentStore store(*database_);
  payments::AutoReload reload;
  reload.workspace = "acme";
  reload.enabled = true;
  reload.state = payments::ReloadState::kPaused;
  reload.pause_reason = "authentication_required";
  reload.confirm_page = "page";
  payments::Payment page;
  page.workspace = "acme";
  page.id = "page";
  page.provider = "stripe";
  page.amount_nano_usd = kNanoPerUsd;
  const auto write = [&] {
    ASSERT_TRUE(store
                    .Run("acme", 1,
                         [&](payments::WorkspaceTx& tx) -> sql::SqlResult<void> {
                           if (auto put = tx.Put(reload); !put.ok()) return put;
                           return tx.Put(page);
                         })
                    .ok());
  };
  write();
  replica->engine.Check("acme");
  EXPECT_TRUE(Outbox().empty()) << "the page is not made yet";
  page.state = payments::PaymentState::kSubmitted;
  page.checkout_url = "https://pay.example/page";
  write();
  for (int i = 0; i < 2; ++i) replica->engine.Check("acme");
  EXPECT_EQ(Outbox(), (Kinds{{"reload_paused", 1}}));
  replica->engine.DeliverDue();
  ASSERT_EQ(smtp_.mails().size(), 1u);
  EXPECT_NE(smtp_.mails().front().text.find("https://pay.example/page"), std::string::npos);
}

TEST_P(AlertEngineTest, ANoticeIsTriedAgainUntilItIsTakenByEachReceiver) {
  auto replica = Make();
  Add(1);
  Set(*replica, MailAt(10));
  auto webhook = replica->admin.CreateWebhook("acme", hooks_.url(), "r1", "ann");
  ASSERT_TRUE(webhook.ok()) << webhook.error().message;
  hooks_.Answer({500, 0, 302});
  smtp_.Refuse(1);
  replica->engine.Check("acme");
  EXPECT_EQ(replica->engine.DeliverDue(), 2);
  EXPECT_EQ(replica->engine.DeliverDue(), 0) << "not before a minute";
  for (const int64_t minutes : {1, 2, 4}) {
    Advance(minutes * 60 - 1);
    EXPECT_EQ(replica->engine.DeliverDue(), 0) << minutes;
    Advance(1);
    EXPECT_GT(replica->engine.DeliverDue(), 0) << minutes;
  }
  Advance(7 * 86'400);
  EXPECT_EQ(replica->engine.DeliverDue(), 0);
  EXPECT_EQ(smtp_.mails().size(), 1u);
  const auto requests = hooks_.requests();
  ASSERT_EQ(requests.size(), 4u);
  for (const http::HttpRequest& request : requests) {
    EXPECT_EQ(request.header("tollgate-notice"), requests[0].header("tollgate-notice"));
    EXPECT_EQ(request.body, requests[0].body);
    const std::string signature(request.header("tollgate-signature"));
    const std::string time = signature.substr(2, signature.find(',') - 2);
    EXPECT_EQ(signature, "t=" + time + ",v1=" +
                             HexEncode(HmacSha256(webhook->secret, time + "." + request.body)));
  }
}

TEST_P(AlertEngineTest, TwoReplicasDoNotSendTheSameNoticeAtOnceAndACrashedOneIsReplaced) {
  auto one = Make();
  auto two = Make();
  Add(1);
  Set(*one, MailAt(10));
  one->engine.Check("acme");
  auto due = one->store.Due(clock_.WallUs(), 10);
  ASSERT_TRUE(due.ok() && due->size() == 1);
  Delivery mine = due->front();
  Delivery theirs = mine;
  EXPECT_TRUE(*one->store.Claim(mine, clock_.WallUs() + 120'000'000));
  EXPECT_FALSE(*two->store.Claim(theirs, clock_.WallUs() + 120'000'000));
  EXPECT_EQ(two->engine.DeliverDue(), 0);
  // The first engine crashes before it has sent anything.
  Advance(121);
  EXPECT_EQ(two->engine.DeliverDue(), 1);
  EXPECT_EQ(smtp_.mails().size(), 1u);
  // The first engine was only stopped: its late result changes nothing.
  ASSERT_TRUE(one->store.Finish(mine, DeliveryState::kWaiting, 1, "late").ok());
  EXPECT_EQ(one->store.Outbox("acme")->front().state, DeliveryState::kDelivered);
}

TEST_P(AlertEngineTest, AReceiverThatNeverTakesANoticeIsGivenUpAfterThreeDays) {
  auto replica = Make();
  Add(1);
  Set(*replica, MailAt(10));
  replica->engine.Check("acme");
  smtp_.Refuse(1'000);
  int tries = 0;
  int64_t longest = 0;
  const int64_t start_us = clock_.WallUs();
  for (int i = 0; i < 100; ++i) {
    const Delivery row = replica->store.Outbox("acme")->front();
    if (row.state != DeliveryState::kWaiting) break;
    longest = std::max(longest, row.next_us - clock_.WallUs());
    if (row.next_us > clock_.WallUs()) clock_.Advance(row.next_us - clock_.WallUs());
    tries += replica->engine.DeliverDue();
    smtp_.Refuse(1'000);
  }
  EXPECT_EQ(replica->store.Outbox("acme")->front().state, DeliveryState::kGivenUp);
  EXPECT_EQ(longest, int64_t{6} * 3600 * 1'000'000);
  EXPECT_GE(clock_.WallUs() - start_us, int64_t{72} * 3600 * 1'000'000);
  EXPECT_LE(clock_.WallUs() - start_us, int64_t{79} * 3600 * 1'000'000);
  EXPECT_GT(tries, 15);
  EXPECT_TRUE(smtp_.mails().empty());
}

TEST_P(AlertEngineTest, SecretsOfWebhooksAreSealedAndOpenOnlyWithTheirKeyAndInTheirRow) {
  const std::string key(kSealKeyBytes, 'k');
  AlertStore plain(*database_);
  AlertStore sealing(*database_, key);
  bool full = false;
  AlertWebhook webhook{"acme", "one", "https://example.com/", "whsec_one", 1};
  ASSERT_TRUE(plain.AddWebhook(webhook, "ann", full).ok());  // stored before a key was configured
  webhook.id = "two";
  webhook.secret = "whsec_two";
  ASSERT_TRUE(sealing.AddWebhook(webhook, "ann", full).ok());
  ASSERT_TRUE(sealing.SealSecrets().ok());
  ASSERT_TRUE(sealing.SealSecrets().ok());
  const auto stored = [&](const std::string& what) {
    std::string all;
    EXPECT_TRUE(database_
                    ->Transact(sql::TxMode::kRead,
                               [&](sql::Connection& db) {
                                 all.clear();
                                 return db.Query(
                                     "SELECT " + what + " FROM alert_webhook ORDER BY id", {},
                                     [&](const sql::Row& row) { all += row.Text(0) + "\n"; });
                               })
                    .ok());
    return all;
  };
  EXPECT_EQ(stored("secret").find("whsec"), std::string::npos);
  EXPECT_EQ((*sealing.FindWebhook("acme", "one"))->secret, "whsec_one");
  EXPECT_EQ((*sealing.FindWebhook("acme", "two"))->secret, "whsec_two");
  EXPECT_EQ((*plain.FindWebhook("acme", "two"))->secret, "");
  EXPECT_EQ(
      (*AlertStore(*database_, std::string(kSealKeyBytes, 'x')).FindWebhook("acme", "two"))->secret,
      "");
  ASSERT_TRUE(database_
                  ->Transact(sql::TxMode::kWrite,
                             [](sql::Connection& db) {
                               return db.ExecuteScript(
                                   "UPDATE alert_webhook SET secret = (SELECT one.secret FROM "
                                   "alert_webhook one WHERE one.id = 'one' AND"
                                   " one.shard = alert_webhook.shard) WHERE id = 'two'");
                             })
                  .ok());
  EXPECT_EQ((*sealing.FindWebhook("acme", "two"))->secret, "");
}

TEST_P(AlertEngineTest, AWebhooksSecretIsShownOnceAndWhatWaitsForADeletedOneIsDropped) {
  auto replica = Make();
  auto made = replica->admin.CreateWebhook("acme", hooks_.url(), "r1", "ann");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->secret.size(), 46u);
  auto again = replica->admin.CreateWebhook("acme", hooks_.url(), "r1", "ann");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->id, made->id);
  EXPECT_EQ(again->secret, "");
  EXPECT_EQ(
      replica->admin.CreateWebhook("acme", "https://example.com/", "r1", "ann").error().reason,
      "REQUEST_ID_REUSED");
  EXPECT_EQ(replica->admin.Webhooks("acme")->front().secret, "");
  EXPECT_TRUE(replica->admin.TestWebhook("acme", made->id, "user:ann")->ok);
  hooks_.Answer({500});
  EXPECT_EQ(replica->admin.TestWebhook("acme", made->id, "user:ann")->result, "500");
  for (int i = 2; i <= 10; ++i) {
    EXPECT_TRUE(
        replica->admin.CreateWebhook("acme", hooks_.url(), "r" + std::to_string(i), "ann").ok());
  }
  EXPECT_EQ(replica->admin.CreateWebhook("acme", hooks_.url(), "r11", "ann").error().reason,
            "TOO_MANY_WEBHOOKS");
  SettingChange change;
  change.low_balance_nano_usd = kNanoPerUsd;
  Set(*replica, change);
  replica->engine.Check("acme");
  EXPECT_EQ(Outbox()["low_balance"], 10);
  ASSERT_TRUE(replica->admin.DeleteWebhook("acme", made->id, "ann").ok());
  EXPECT_FALSE(replica->admin.DeleteWebhook("acme", made->id, "ann").ok());
  EXPECT_EQ(Outbox()["low_balance"], 9);
}

TEST_P(AlertEngineTest, WrongSettingsAreRefused) {
  auto replica = Make();
  SettingChange change;
  change.emails = {"ann@example.com\r\nBcc: eve@example.com"};
  EXPECT_EQ(replica->admin.Update("acme", change, "t").error().field, "alert_settings.emails");
  change = {};
  change.cap_percents = {60};
  EXPECT_FALSE(replica->admin.Update("acme", change, "t").ok());
  change = {};
  change.low_balance_nano_usd = -1;
  EXPECT_FALSE(replica->admin.Update("acme", change, "t").ok());
  EXPECT_FALSE(replica->admin.CreateWebhook("acme", "http://example.com/", "r1", "ann").ok());
  EXPECT_EQ(replica->admin.Get("acme")->updated_us, 0);
  EXPECT_EQ(replica->admin.Get("acme")->cap_percents, (std::vector<int>{50, 80, 100}));
}

}  // namespace
}  // namespace tollgate::billing::alerts
