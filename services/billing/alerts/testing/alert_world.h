// Alerts over a real ledger, with a mail server and a receiver of webhooks, for tests: one
// database, several engines.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/ledger_shard.h"
#include "common/mail/testing/smtp_listener.h"
#include "services/billing/alerts/alert_admin.h"
#include "services/billing/alerts/testing/hook_receiver.h"
#include "services/billing/commit/testing/ledger_world.h"
#include "services/billing/payments/ledger_port.h"
#include "services/billing/payments/payment_store.h"

namespace tollgate::billing::alerts {

// One replica of billing.
struct Replica {
  Replica(const std::string& url, const Clock& clock, AlertEngine::Options options)
      : database(*sql::Database::Open({.url = url})),
        store(*database),
        engine(std::move(options), clock, store, metrics),
        admin(engine) {}

  std::unique_ptr<sql::Database> database;
  AlertStore store;
  AlertMetrics metrics;
  AlertEngine engine;
  AlertAdmin admin;
};

class AlertTest : public LedgerWorld {
 protected:
  AlertTest() : LedgerWorld("alerts") {}
  void SetUp() override {
    LedgerWorld::SetUp();
    if (!Runs()) return;
    ASSERT_TRUE(payments::PaymentStore(*database_).Migrate().ok());
    ASSERT_TRUE(AlertStore(*database_).Migrate().ok());
    DistributeForTests(*database_);
  }

  std::unique_ptr<Replica> Make() {
    AlertEngine::Options options;
    options.mail = {smtp_.url(), "", "", "billing@gate.example"};
    options.operator_emails = {"ops@gate.example"};
    options.allow_private = true;
    options.timeout_ms = 60'000;
    return std::make_unique<Replica>(url_, clock_, std::move(options));
  }
  void Advance(int64_t seconds) { clock_.Advance(seconds * 1'000'000); }
  void Add(int64_t usd) {
    auto reply = payments::LedgerServicePort(*ledger_).Submit(
        AddCredit{"acme", "c" + std::to_string(++next_), usd * kNanoPerUsd, false, "t", "t"});
    ASSERT_TRUE(reply.ok() && reply->ok);
  }
  // Removes paid credit, as usage would.
  void Spend(int64_t usd) {
    Correct debit;
    debit.workspace = "acme";
    debit.command_id = "d" + std::to_string(++next_);
    debit.kind = CommandKind::kDebitAdjustment;
    debit.amount_nano_usd = usd * kNanoPerUsd;
    debit.actor = debit.reason = "t";
    auto reply = payments::LedgerServicePort(*ledger_).Submit(debit);
    ASSERT_TRUE(reply.ok() && reply->ok);
  }
  void Sql(const std::string& text, std::initializer_list<sql::Param> params) {
    auto done =
        database_->Transact(sql::TxMode::kWrite, [&](sql::Connection& db) -> sql::SqlResult<void> {
          auto result = db.Execute(text, params);
          if (!result.ok()) return Fail{std::move(result).error()};
          return {};
        });
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  void Set(Replica& replica, const SettingChange& change) {
    auto set = replica.admin.Update("acme", change, "tester");
    ASSERT_TRUE(set.ok()) << set.error().message;
  }
  // Kinds of the notices with the number of their receivers.
  std::map<std::string, int> Outbox() {
    auto rows = AlertStore(*database_).Outbox("acme");
    EXPECT_TRUE(rows.ok());
    std::map<std::string, int> kinds;
    if (rows.ok()) {
      for (const Delivery& row : *rows) ++kinds[row.kind];
    }
    return kinds;
  }

  int next_ = 0;
  ManualClock clock_{1'763'700'000'000'000};
  mail::SmtpListener smtp_;
  HookReceiver hooks_;
};

inline std::string Dialect(const ::testing::TestParamInfo<sql::Dialect>& info) {
  return info.param == sql::Dialect::kSqlite ? "sqlite" : "postgres";
}

}  // namespace tollgate::billing::alerts
