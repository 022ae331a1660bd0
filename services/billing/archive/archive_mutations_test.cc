// Every kind of change of what an archived ledger keeps in its database is noticed and named,
// without the files of the archive and with them.
#include <gtest/gtest.h>

#include "services/billing/archive/testing/archive_world.h"
#include "services/billing/reports/rollups.h"
#include "services/billing/storage/rollup_tables.h"

namespace tollgate::billing {
namespace {

struct Mutation {
  const char* change;
  const char* named;  // part of a violation
};

// Noticed from the database alone. Month 202510 and 202511 are archived, 202512 is not.
constexpr Mutation kMutations[] = {
    {"DELETE FROM archive_workspace", "entries are missing"},
    {"UPDATE archive_workspace SET month = month - 1", "archive_workspace is damaged"},
    {"UPDATE archive_workspace SET sequence = sequence - 1", "archive_workspace is damaged"},
    {"UPDATE archive_workspace SET head = digest", "archive_workspace is damaged"},
    {"UPDATE archive_workspace SET digest = head", "the state does not have its digest"},
    {"UPDATE archive_workspace SET digest = NULL", "the state has no digest"},
    {"DELETE FROM archive WHERE month = 202511", "archive ends at another time"},
    {"UPDATE archive SET cut_us = cut_us + 1 WHERE month = 202511", "archive ends at another time"},
    {"UPDATE wallet SET paid = paid + 1", "paid credit is"},
    {"UPDATE cap_month SET spent = spent + 1 WHERE month = 202510", "spend of month 202510"},
    {"UPDATE key_month SET spent = spent + 1 WHERE month = 202510", "the usage of archived months"},
    {"UPDATE usage_day SET requests = requests + 1 WHERE period = (SELECT min(period) FROM "
     "usage_day)",
     "the usage of archived months"},
    {"DELETE FROM usage_day WHERE period = (SELECT min(period) FROM usage_day)",
     "the usage of archived months"},
    {"DELETE FROM usage_quarter", "usage_quarter of key"},
    {"UPDATE command SET actor = 'eve' WHERE id = 'c'", "the commands of archived months"},
    {"UPDATE command SET amount = amount + 1 WHERE id = 'c'", "the commands of archived months"},
    {"DELETE FROM command WHERE id = 'cap'", "the commands of archived months"},
    {"UPDATE rollup_cut SET sequence = sequence - 1", "statement_month"},
    {"UPDATE rollup_cut SET sequence = sequence + 1", "which does not exist (rollup_cut)"},
    {"UPDATE rollup_cut SET sequence = 1", "are archived"},
    {"UPDATE rollup_cut SET base_us = 1", "a base that no archive has"},
    {"UPDATE rollup_cut SET receivables = receivables + 1", "rollup_cut has receivables"},
    {"DELETE FROM rollup_cut", "have no rollup_cut"},
    {"INSERT INTO rollup_stale SELECT shard, workspace, period, model FROM workspace_quarter",
     "rollup_stale has"},
    {"UPDATE workspace_quarter SET charged = charged + 1", "workspace_quarter of model"},
    {"DELETE FROM workspace_quarter WHERE period = (SELECT min(period) FROM workspace_quarter)",
     "workspace_quarter of model"},
    {"UPDATE workspace_day SET prompt = prompt + 1", "workspace_day of model"},
    {"UPDATE workspace_day SET model = 'other'", "workspace_day of model"},
    {"UPDATE key_spend_day SET charged = charged + 1", "key_spend_day of key"},
    {"UPDATE key_spend_day SET key_id = 'other' WHERE key_id = 'key1'", "key_spend_day"},
    {"UPDATE key_spend_month SET charged = charged - 1", "key_spend_month of key"},
    {"DELETE FROM key_spend_month", "key_spend_month of key"},
    {"UPDATE statement_month SET amount = amount + 1 WHERE month = 202510",
     "the statements of archived months"},
    {"UPDATE statement_month SET kind = kind + 50 WHERE month = 202511",
     "the statements of archived months"},
    {"UPDATE statement_month SET month = 202509 WHERE month = 202510",
     "the statements of archived months"},
    {"DELETE FROM statement_month WHERE month = 202510", "the statements of archived months"},
    {"UPDATE statement_month SET amount = amount + 1 WHERE month = 202512",
     "statement_month of 202512"},
    {"UPDATE statement_month SET receivable = 1 WHERE month = 202510",
     "the statements of archived months"},
    {"UPDATE statement_month SET receivable = 1 WHERE month = 202512", "statement_month of 202512"},
    {"UPDATE statement_usage SET amount = amount * 2 WHERE month = 202510",
     "the statements of archived months"},
    {"UPDATE statement_usage SET requests = requests + 1 WHERE month = 202511",
     "the statements of archived months"},
    {"UPDATE statement_usage SET key_id = 'other' WHERE month = 202512",
     "statement_usage of 202512"},
    {"UPDATE statement_close SET sequence = sequence - 1", "statement_month of 202512"},
    {"UPDATE statement_close SET sequence = sequence + 1", "statement_close of 202512 is damaged"},
    {"UPDATE statement_close SET month = 202511", "the statements of archived months"},
    {"UPDATE statement_close SET at_us = 1", "statement_close of 202512 is damaged"},
    {"INSERT INTO statement_month SELECT shard, 'ghost', month, kind, amount, 0 FROM"
     " statement_month",
     "workspace ghost: rows of statement_month"},
    {"INSERT INTO workspace_day SELECT shard, 'ghost', period, model, requests, free_requests,"
     " prompt, cached, cache_write, completion, reasoning, charged, overrun FROM workspace_day",
     "workspace ghost: rows of workspace_day"},
    {"INSERT INTO dead_letter SELECT shard, id, 1, workspace, created_us, 1, id, 1, 0, '', '' FROM"
     " hold",
     "is damaged"},
};

// Noticed only with the files.
constexpr Mutation kMutationsOfFiles[] = {
    {"UPDATE archive SET manifest = (SELECT digest FROM archive_workspace) WHERE month = 202510",
     "is not the manifest that the database knows"},
    {"UPDATE archive SET entries = entries - 1 WHERE month = 202510", "the numbers of rows"},
    {"UPDATE archive SET holds = 0 WHERE month = 202511", "the numbers of rows"},
    {"UPDATE archive SET cut_us = cut_us - 1 WHERE month = 202510", "has a wrong end"},
};

class ArchiveMutationsTest : public ArchiveTest {
 protected:
  void SetUp() override {
    ArchiveTest::SetUp();
    if (!connection_) return;
    FillMonths();
    const int64_t december_us = UtcMonthStartUs(202512) + 21 * kDayUs;
    const Id id = TestId(900, december_us);
    Run({MakeAuthorize(id, 100, 50)}, december_us);
    Run({MakeSettle(id, 100, 20)}, december_us + 1);
    ASSERT_TRUE(Archive(202512, UtcMonthStartUs(202601) + kDayUs).ok());
    ASSERT_TRUE(FoldLedger(*connection_).ok());
    ExpectVerified();
    ASSERT_EQ(ArchiveViolations(), "");
    tables_ = {"wallet",  "cap_month", "key_month",         "usage_quarter", "usage_day",
               "command", "archive",   "archive_workspace", "dead_letter",   "hold"};
    tables_.push_back("statement_close");
    tables_.insert(tables_.end(), std::begin(kRollUpNames), std::end(kRollUpNames));
    for (const std::string& table : tables_) {
      Script("CREATE TABLE saved_" + table + " AS SELECT * FROM " + table);
    }
  }
  void Script(const std::string& script) {
    auto done = connection_->ExecuteScript(script);
    ASSERT_TRUE(done.ok()) << done.error().message << "\n" << script;
  }
  void Restore() {
    for (const std::string& table : tables_) {
      Script("DELETE FROM " + table + "; INSERT INTO " + table + " SELECT * FROM saved_" + table);
    }
  }
  // Returns false if the database refuses the change.
  bool Change(const Mutation& mutation) {
    auto changed = connection_->Execute(mutation.change);
    // Citus refuses to move a row to another shard.
    EXPECT_TRUE(changed.ok() || connection_->distributed())
        << mutation.change << ": " << changed.error().message;
    if (changed.ok()) EXPECT_GT(*changed, 0) << mutation.change;
    return changed.ok();
  }
  std::vector<std::string> tables_;
};

TEST_P(ArchiveMutationsTest, NoChangeOfAnArchivedLedgerIsUnnoticed) {
  for (const Mutation& mutation : kMutations) {
    if (!Change(mutation)) continue;
    auto report = VerifyLedger(*database_);
    ASSERT_TRUE(report.ok()) << mutation.change << ": " << report.error().message;
    std::string all;
    for (const std::string& violation : report->violations) all += violation + '\n';
    EXPECT_NE(all.find(mutation.named), std::string::npos) << mutation.change << "\nfound:\n"
                                                           << all;
    ASSERT_NO_FATAL_FAILURE(Restore());
  }
  for (const Mutation& mutation : kMutationsOfFiles) {
    if (!Change(mutation)) continue;
    const std::string all = ArchiveViolations();
    EXPECT_NE(all.find(mutation.named), std::string::npos) << mutation.change << "\nfound:\n"
                                                           << all;
    ASSERT_NO_FATAL_FAILURE(Restore());
  }
  ExpectVerified();
  EXPECT_EQ(ArchiveViolations(), "");
}

INSTANTIATE_TEST_SUITE_P(Both, ArchiveMutationsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
