// An auth store, and the database of another service with audit entries.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "services/auth/storage/audit_checkpoints.h"
#include "services/auth/storage/audit_copy.h"
#include "services/auth/testing/auth_world.h"

namespace tollgate::auth {

class AuditWorld : public AuthWorld {
 protected:
  void SetUp() override {
    AuthWorld::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    static int databases = 0;
    std::string url = "sqlite:" + folder_ + "/billing.db";
    if (GetParam() == DatabaseKind::kPostgres) {
      url = testing::TestPostgres::Shared()->MakeDatabase("auditworld_" +
                                                          std::to_string(++databases));
    }
    auto opened = sql::Database::Open({.url = url});
    ASSERT_TRUE(opened.ok());
    billing_ = std::move(*opened);
    ASSERT_TRUE(audit::Migrate(*billing_).ok());
  }
  void TearDown() override {
    billing_.reset();
    AuthWorld::TearDown();
  }

  AuditRecord Make(const std::string& action) const {
    return {.at_us = clock_.WallUs(),
            .actor = "user:ann",
            .action = action,
            .workspace_id = "acme",
            .subject = "cap",
            .detail = "5 USD",
            .address = "192.0.2.7",
            .request_id = "r-" + action};
  }
  // Appends an event of auth.
  void Append(const std::string& action) { Write(store_->database(), kAuditTables, action); }
  // Appends an entry of billing.
  void AppendToBilling(const std::string& action) { Write(*billing_, audit::kEntries, action); }

  AuditSource Billing() {
    return {"billing", [this](int64_t after, int limit) -> Result<audit::Page> {
              if (billing_down_) return Unavailable("billing is down");
              auto connection = billing_->Borrow();
              if (!connection.ok()) return Fail{ToError(connection.error())};
              auto page = audit::ReadPage(**connection, audit::kEntries, after, limit);
              if (!page.ok()) return Fail{ToError(page.error())};
              return *std::move(page);
            }};
  }
  // Copies until nothing is left; returns the problem.
  std::string CopyAll() {
    while (true) {
      auto step = CopyAudit(store_->database(), Billing());
      EXPECT_TRUE(step) << (step ? "" : step.error().ToString());
      if (!step) return "failed";
      if (!step->problem.empty() || step->complete) return step->problem;
    }
  }
  FullFinding Verify(const AuditCheckpoints& checkpoints = {}) {
    FullFinding finding;
    EXPECT_TRUE(store_->Read([&](sql::Connection& sql) -> sql::SqlResult<void> {
      // Two minutes later, so that all entries should have been copied.
      auto found = VerifyAudit(sql, checkpoints, {Billing()}, clock_.WallUs() + 120'000'000);
      if (!found) return Fail{found.error()};
      finding = *found;
      return {};
    }));
    return finding;
  }
  void Sql(const std::string& statements) { Run(store_->database(), statements); }
  void BillingSql(const std::string& statements) { Run(*billing_, statements); }

  // Writes the key files of checkpoints.
  void MakeKeys() {
    ASSERT_EQ(std::system(("openssl genpkey -algorithm ed25519 -out " + folder_ +
                           "/key.pem 2>/dev/null && openssl pkey -in " + folder_ +
                           "/key.pem -pubout -out " + folder_ + "/public.pem")
                              .c_str()),
              0);
  }
  AuditCheckpoints Checkpoints() const {
    return {.file = folder_ + "/checkpoints", .key_file = folder_ + "/public.pem"};
  }
  // Recompute the chain from the table, as an attacker with database access would.
  void RewriteChain() { Rewrite(store_->database(), kAuditTables); }
  void RewriteBillingChain() { Rewrite(*billing_, audit::kEntries); }

  std::unique_ptr<sql::Database> billing_;
  bool billing_down_ = false;

 private:
  void Write(sql::Database& database, const audit::Tables& tables, const std::string& action) {
    const auto done = database.Transact(sql::TxMode::kWrite, [&](sql::Connection& sql) {
      return audit::Append(sql, tables, Make(action));
    });
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
  }
  void Run(sql::Database& database, const std::string& statements) {
    const auto done = database.Transact(
        sql::TxMode::kWrite, [&](sql::Connection& sql) { return sql.ExecuteScript(statements); });
    EXPECT_TRUE(done) << statements << ": " << (done ? "" : done.error().message);
  }
  void Rewrite(sql::Database& database, const audit::Tables& tables) {
    const std::string entries(tables.entries), head(tables.head);
    EXPECT_TRUE(
        database.Transact(sql::TxMode::kWrite, [&](sql::Connection& sql) -> sql::SqlResult<void> {
          auto records = audit::ReadAfter(sql, tables, 0, 100'000);
          if (!records) return Fail{records.error()};
          std::string hash = audit::GenesisHash();
          int64_t sequence = 0;
          for (AuditRecord& record : *records) {
            const int64_t old = record.sequence;
            record.sequence = ++sequence;
            hash = audit::HashOf(hash, record);
            if (record.sequence == old && record.hash == hash) continue;
            auto done = sql.Execute(
                "UPDATE " + entries + " SET sequence = $1, hash = $2 WHERE sequence = $3",
                {sequence, sql::Param::Blob(hash), old});
            if (!done) return Fail{done.error()};
          }
          auto done = sql.Execute("UPDATE " + head + " SET audit_sequence = $1, audit_hash = $2",
                                  {sequence, sql::Param::Blob(hash)});
          if (!done) return Fail{done.error()};
          return {};
        }));
  }
};

}  // namespace tollgate::auth
