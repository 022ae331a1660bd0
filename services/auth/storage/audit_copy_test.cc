#include "services/auth/storage/audit_copy.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "services/auth/testing/audit_world.h"

namespace tollgate::auth {
namespace {

using ::testing::HasSubstr;

class AuditCopyTest : public AuditWorld {
 protected:
  // Copied events of the log, oldest first.
  std::vector<AuditRecord> Copies() {
    std::vector<AuditRecord> copies;
    for (AuditRecord& event : Events()) {
      if (!event.source.empty()) copies.push_back(std::move(event));
    }
    return copies;
  }
};

TEST_P(AuditCopyTest, EachEntryIsCopiedOnceInOrderAndRemembersWhereItIsFrom) {
  AppendToBilling("cap.update");
  AppendToBilling("credit.add");
  Append("key.create");
  EXPECT_EQ(CopyAll(), "");
  AppendToBilling("payment.refund");
  EXPECT_EQ(CopyAll(), "");
  EXPECT_EQ(CopyAll(), "");
  const auto copies = Copies();
  ASSERT_EQ(copies.size(), 3U);
  const char* const actions[] = {"cap.update", "credit.add", "payment.refund"};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(copies[i].source, "billing");
    EXPECT_EQ(copies[i].source_sequence, i + 1);
    EXPECT_TRUE(audit::SameContent(copies[i], Make(actions[i])));
  }
  const FullFinding found = Verify();
  EXPECT_EQ(found.problem(), "");
  ASSERT_EQ(found.sources.size(), 1U);
  EXPECT_EQ(found.sources[0].sequence, 3);
  EXPECT_EQ(found.sources[0].waiting, 0);
}

TEST_P(AuditCopyTest, ALongLogIsCopiedInPieces) {
  std::vector<AuditRecord> many;
  for (int i = 0; i < 450; ++i) many.push_back(Make("cap.update" + std::to_string(i)));
  ASSERT_TRUE(billing_->Transact(sql::TxMode::kWrite, [&](sql::Connection& sql) {
    return audit::Append(sql, audit::kEntries, many);
  }));
  EXPECT_EQ(CopyAll(), "");
  EXPECT_EQ(Copies().size(), 450U);
  EXPECT_EQ(Verify().problem(), "");
}

TEST_P(AuditCopyTest, ReplicasThatCopyAtTheSameTimeCopyEachEntryOnce) {
  auto other = Open(kPepper);
  ASSERT_TRUE(other);
  std::atomic<bool> stop = false;
  std::vector<std::thread> replicas;
  for (AuthStore* store : {store_.get(), other.get()}) {
    replicas.emplace_back([&, store] {
      while (!stop) EXPECT_TRUE(CopyAudit(store->database(), Billing()));
    });
  }
  for (int i = 0; i < 50; ++i) {
    AppendToBilling("cap.update");
    if (i % 5 == 0) Append("key.create");
  }
  stop = true;
  for (std::thread& replica : replicas) replica.join();
  EXPECT_EQ(CopyAll(), "");
  EXPECT_EQ(Copies().size(), 50U);
  EXPECT_EQ(Verify().problem(), "");
}

TEST_P(AuditCopyTest, WhatWaitsDuringAnOutageIsCopiedAfterIt) {
  AppendToBilling("cap.update");
  billing_down_ = true;
  EXPECT_FALSE(CopyAudit(store_->database(), Billing()));
  EXPECT_THAT(Verify().problem(), HasSubstr("could not be read"));
  billing_down_ = false;
  EXPECT_EQ(Verify().problem(), "entry 1 of billing is not in the log");
  EXPECT_EQ(CopyAll(), "");
  EXPECT_EQ(Verify().problem(), "");
}

TEST_P(AuditCopyTest, AFreshEntryThatIsNotCopiedYetWaits) {
  AppendToBilling("cap.update");
  EXPECT_EQ(CopyAll(), "");
  clock_.Advance(100'000'000);
  AppendToBilling("cap.update");
  FullFinding finding;
  EXPECT_TRUE(store_->Read([&](sql::Connection& sql) -> sql::SqlResult<void> {
    auto found = VerifyAudit(sql, {}, {Billing()}, clock_.WallUs());
    if (!found) return Fail{found.error()};
    finding = *found;
    return {};
  }));
  EXPECT_EQ(finding.problem(), "");
  EXPECT_EQ(finding.sources.at(0).sequence, 1);
  EXPECT_EQ(finding.sources.at(0).waiting, 1);
}

TEST_P(AuditCopyTest, WhatDoesNotContinueTheChainIsNotCopied) {
  for (int i = 0; i < 3; ++i) AppendToBilling("cap.update");
  EXPECT_EQ(CopyAll(), "");
  for (int i = 0; i < 3; ++i) AppendToBilling("credit.add");
  BillingSql("UPDATE audit_entry SET actor = 'user:eve' WHERE sequence = 5");
  EXPECT_EQ(CopyAll(), "the log of billing: event 5 was changed");
  EXPECT_EQ(Copies().size(), 4U);
  // Recomputing the chain does not help: the new hashes do not continue the copied ones.
  RewriteBillingChain();
  EXPECT_EQ(CopyAll(), "");  // the changed entry had not been copied yet
  BillingSql("UPDATE audit_entry SET actor = 'user:eve' WHERE sequence = 2");
  RewriteBillingChain();
  AppendToBilling("credit.add");
  EXPECT_THAT(CopyAll(), HasSubstr("event 7 was changed"));
  BillingSql("DELETE FROM audit_entry WHERE sequence > 4");
  RewriteBillingChain();
  EXPECT_THAT(CopyAll(), HasSubstr("entries were removed"));
  EXPECT_EQ(Copies().size(), 6U);
}

TEST_P(AuditCopyTest, TheVerificationNamesWhatIsWrong) {
  for (int i = 0; i < 4; ++i) AppendToBilling("cap.update" + std::to_string(i));
  EXPECT_EQ(CopyAll(), "");
  ASSERT_EQ(Verify().problem(), "");
  Sql("CREATE TABLE saved AS SELECT * FROM audit_event");
  BillingSql("CREATE TABLE saved AS SELECT * FROM audit_entry");
  const auto restore = [&] {
    Sql("DELETE FROM audit_event; INSERT INTO audit_event SELECT * FROM saved");
    BillingSql("DELETE FROM audit_entry; INSERT INTO audit_entry SELECT * FROM saved");
    RewriteChain();
    RewriteBillingChain();
    ASSERT_EQ(Verify().problem(), "");
  };
  struct Case {
    std::string source, copy, problem;
  };
  // Event 1 of the log creates the workspace, so copies begin with event 2. The chains are
  // recomputed after each change.
  const Case cases[] = {
      {"UPDATE audit_entry SET detail = '9 USD' WHERE sequence = 3", "",
       "event 4 of the log differs from entry 3 of billing"},
      {"", "UPDATE audit_event SET detail = '9 USD' WHERE sequence = 4",
       "event 4 of the log differs from entry 3 of billing"},
      {"DELETE FROM audit_entry WHERE sequence = 4", "",
       "event 5 of the log is the copy of entry 4 of billing, which does not exist"},
      {"", "DELETE FROM audit_event WHERE sequence = 3",
       "event 3 of the log is the copy of entry 3 of billing instead of 2"},
      {"", "DELETE FROM audit_event WHERE sequence = 5", "entry 4 of billing is not in the log"},
      {"",
       "UPDATE audit_event SET sequence = 100 WHERE sequence = 3;"
       "UPDATE audit_event SET sequence = 3 WHERE sequence = 4;"
       "UPDATE audit_event SET sequence = 4 WHERE sequence = 100",
       "event 3 of the log is the copy of entry 3 of billing instead of 2"},
      {"",
       "INSERT INTO audit_event SELECT 100, at_us, actor, action, workspace_id, subject, detail, "
       "hash, address, format, request_id, source, 5, source_hash FROM audit_event WHERE "
       "sequence = 5",
       "event 6 of the log is the copy of entry 5 of billing, which does not exist"},
      {"", "UPDATE audit_event SET source = 'mint' WHERE sequence = 5",
       "entry 4 of billing is not in the log"},
      {"",
       "INSERT INTO audit_event SELECT 100, at_us, actor, action, workspace_id, subject, detail, "
       "hash, address, format, request_id, 'mint', 1, source_hash FROM audit_event WHERE "
       "sequence = 5",
       "the log has entries of mint, which is not one of the services"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.source + each.copy);
    if (!each.source.empty()) BillingSql(each.source);
    if (!each.copy.empty()) Sql(each.copy);
    RewriteChain();
    RewriteBillingChain();
    EXPECT_EQ(Verify().problem(), each.problem);
    restore();
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, AuditCopyTest,
                         ::testing::Values(DatabaseKind::kSqlite, DatabaseKind::kPostgres),
                         NameOfKind);

}  // namespace
}  // namespace tollgate::auth
