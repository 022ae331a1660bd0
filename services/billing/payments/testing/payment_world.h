// Payments over a real ledger and a scripted provider, for tests: one database, several engines.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/try.h"
#include "services/billing/commit/testing/ledger_world.h"
#include "services/billing/payments/ledger_port.h"
#include "services/billing/payments/manual_provider.h"
#include "services/billing/payments/payment_admin.h"
#include "services/billing/payments/testing/scripted_stripe.h"
#include "services/billing/payments/testing/spend.h"
#include "services/billing/payments/webhook.h"
#include "services/billing/reports/reports.h"
#include "services/billing/verify/verify.h"

namespace tollgate::billing::payments {

inline constexpr char kTestSecret[] = "whsec_test";
inline constexpr int64_t kTen = 10 * kNanoPerUsd;

// The ledger of the test, at the time of the test's clock.
class ClockedPort : public LedgerServicePort {
 public:
  ClockedPort(LedgerService& ledger, const Clock& clock)
      : LedgerServicePort(ledger), clock_(clock) {}
  int64_t NowUs() override { return clock_.WallUs(); }
  // The ledger dates its entries by the system's clock, so all of them since start_us of that clock
  // count.
  void CountFrom(int64_t start_us) { start_us_ = start_us; }
  Result<std::vector<Posting>> PostingsBetween(int64_t, int64_t) override {
    return LedgerServicePort::PostingsBetween(start_us_, INT64_MAX);
  }

 private:
  const Clock& clock_;
  int64_t start_us_ = 0;
};

// One replica of billing.
struct Replica {
  Replica(const std::string& url, const Clock& clock, LedgerService& ledger,
          std::unique_ptr<PaymentProvider> made, PaymentEngine::Options options = {})
      : database(*sql::Database::Open({.url = url})),
        store(*database),
        provider(std::move(made)),
        port(ledger, clock),
        engine(std::move(options), store, *provider, port, metrics),
        admin(engine),
        webhook({kTestSecret}, clock, store, metrics) {}

  std::unique_ptr<sql::Database> database;
  PaymentStore store;
  std::unique_ptr<PaymentProvider> provider;
  ClockedPort port;
  PaymentMetrics metrics;
  PaymentEngine engine;
  PaymentAdmin admin;
  Webhook webhook;
};

class PaymentTest : public LedgerWorld {
 protected:
  PaymentTest() : LedgerWorld("payments") {}
  void SetUp() override {
    LedgerWorld::SetUp();
    if (!Runs()) return;
    stripe_.SetNow(clock_.WallUs() / 1'000'000);
    ASSERT_TRUE(PaymentStore(*database_).Migrate().ok());
    DistributeForTests(*database_);
  }

  std::unique_ptr<Replica> Make(PaymentEngine::Options options = {}) {
    return std::make_unique<Replica>(url_, clock_, *ledger_, MakeStripeProvider(stripe_.options()),
                                     std::move(options));
  }
  std::unique_ptr<Replica> MakeManual() {
    return std::make_unique<Replica>(url_, clock_, *ledger_, std::make_unique<ManualProvider>());
  }
  void Advance(int64_t seconds) {
    clock_.Advance(seconds * 1'000'000);
    stripe_.SetNow(clock_.WallUs() / 1'000'000);
  }
  int Deliver(Replica& replica, const std::string& body, const std::string& signature) {
    http::HttpRequest request;
    request.method = "POST";
    request.path = kWebhookPath;
    request.headers.emplace_back("stripe-signature", signature);
    request.body = body;
    bool accepted = false;
    return replica.webhook.Handle(request, accepted).status;
  }
  int Deliver(Replica& replica, const std::string& body) {
    return Deliver(replica, body,
                   ScriptedStripe::Sign(kTestSecret, clock_.WallUs() / 1'000'000, body));
  }
  // Makes a payment of ten USD that the customer has paid on the page, but that is not processed
  // yet.
  Payment Buy(Replica& replica, const std::string& request_id) {
    auto made = replica.admin.Create("acme", 10 * kNanoPerUsd, request_id, "ann");
    EXPECT_TRUE(made.ok());
    stripe_.PayPage(made->checkout_id);
    Advance(60);
    return *made;
  }
  // Delivers the provider's events so far, in order.
  void DeliverAll(Replica& replica) {
    for (const ScriptedStripe::Event& event : stripe_.TakeEvents()) {
      EXPECT_EQ(Deliver(replica, event.body), 200);
    }
  }
  int64_t Paid(const std::string& workspace) {
    auto balance = LedgerServicePort(*ledger_).ReadBalance(workspace);
    EXPECT_TRUE(balance.ok());
    return balance.ok() ? balance->paid_nano_usd : -1;
  }
  std::vector<Entry> Entries(const std::string& workspace) {
    auto entries = ReadEntries(*database_, workspace, 1000, 0);
    EXPECT_TRUE(entries.ok());
    return entries.ok() ? *entries : std::vector<Entry>();
  }
  int Topups(const std::string& workspace) {
    int count = 0;
    for (const Entry& entry : Entries(workspace)) count += entry.kind == EntryKind::kTopup;
    return count;
  }
  // Saves a card for the workspace.
  std::string SaveCard(Replica& replica, const std::string& workspace) {
    auto customer = replica.engine.EnsureCustomer(workspace);
    EXPECT_TRUE(customer.ok());
    auto done = replica.store.Run(workspace, clock_.WallUs(), [&](WorkspaceTx& tx) {
      return tx.Put(PaymentMethod{workspace, "pm_" + workspace, "stripe", "visa", "4242", "2029-04",
                                  clock_.WallUs()});
    });
    EXPECT_TRUE(done.ok());
    return *customer;
  }
  void EnableReload(Replica& replica, const std::string& workspace, int64_t threshold_usd = 5,
                    int64_t amount_usd = 10, int64_t ceiling_usd = 100) {
    auto set = replica.admin.UpdateReload(
        workspace,
        {true, threshold_usd * kNanoPerUsd, amount_usd * kNanoPerUsd, ceiling_usd * kNanoPerUsd},
        "tester");
    ASSERT_TRUE(set.ok()) << set.error().message;
  }
  void Spend(const std::string& workspace, int64_t nano_usd) {
    LedgerServicePort port(*ledger_);
    ASSERT_TRUE(SpendOn(port, workspace, nano_usd));
  }
  // Lowers or raises the credit without a request.
  void Adjust(const std::string& workspace, CommandKind kind, int64_t nano_usd,
              const std::string& id) {
    Correct correct;
    correct.workspace = workspace;
    correct.command_id = id;
    correct.kind = kind;
    correct.amount_nano_usd = nano_usd;
    correct.actor = "tester";
    correct.reason = "a test";
    auto reply = LedgerServicePort(*ledger_).Submit(correct);
    ASSERT_TRUE(reply.ok() && reply->ok);
  }
  void Grant(const std::string& workspace, int64_t nano_usd, const std::string& id) {
    AddCredit credit;
    credit.workspace = workspace;
    credit.command_id = id;
    credit.amount_nano_usd = nano_usd;
    credit.granted = true;
    credit.actor = "tester";
    auto reply = LedgerServicePort(*ledger_).Submit(credit);
    ASSERT_TRUE(reply.ok() && reply->ok);
  }
  // The database was restored to what it was this long ago: auto-reload waits.
  void MarkRestored(int64_t ago_us) {
    const int64_t now_us = clock_.WallUs();
    auto marked =
        database_->Transact(sql::TxMode::kWrite, [&](sql::Connection& db) -> sql::SqlResult<void> {
          TRY(db.Execute("DELETE FROM payment_restore"));
          TRY(
              db.Execute("INSERT INTO payment_restore (id, restored_us, lost_since_us)"
                         " VALUES (1, $1, $2)",
                         {now_us, now_us - ago_us}));
          return {};
        });
    ASSERT_TRUE(marked.ok());
  }
  void ExpectVerified(Replica& replica, const std::string& workspace) {
    auto events = replica.store.Events(workspace);
    ASSERT_TRUE(events.ok());
    EXPECT_EQ(CheckEvents(*events), "") << workspace;
  }

  ManualClock clock_{1'763'700'000'000'000};
  ScriptedStripe stripe_;
};

inline std::string Dialect(const ::testing::TestParamInfo<sql::Dialect>& info) {
  return info.param == sql::Dialect::kSqlite ? "sqlite" : "postgres";
}

}  // namespace tollgate::billing::payments
