#include "services/billing/statement/statement.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

#include "common/money/money.h"
#include "services/billing/archive/archive.h"
#include "services/billing/reports/rollups.h"
#include "services/billing/storage/rollup_tables.h"
#include "services/billing/storage/statement_closes.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

class StatementTest : public LedgerDatabaseTest {
 protected:
  // October: credit and one request. November: a request from October is settled, others of two
  // keys and models, one corrected after its expiry, a refund, a grant.
  void Fill() {
    const int64_t start = UtcMonthStartUs(202511);
    Run({MakeAddCredit("oct", 1'000'000'000)}, start - 9 * kHourUs);
    const Id first = TestId(1, start - kHourUs);
    const Id crossing = TestId(2, start - 5 * kSecondUs);
    Run({MakeAuthorize(first, 100, 50)}, start - kHourUs);
    Run({MakeSettle(first, 100, 20)}, start - kHourUs + 1);
    Run({MakeAuthorize(crossing, 100, 50)}, start - 5 * kSecondUs);
    Run({MakeSettle(crossing, 100, 30)}, start);
    Authorize other = MakeAuthorize(TestId(3, start + kHourUs), 100, 50);
    other.key_id = "second \"key\"";
    other.model = "other";
    const Id late = TestId(4, start + kHourUs);
    Run({MakeAddCredit("grant", 90, true)}, start + kHourUs);
    Run({other, MakeAuthorize(late, 100, 50)}, start + kHourUs);
    Run({MakeHeartbeat(late, 1, 100, 50)}, start + kHourUs + 1);
    Run({MakeSettle(other.request_id, 100, 40)}, start + kHourUs + 2);
    Run({MakeExpire(late)}, start + kHourUs + 70 * kSecondUs);
    Run({MakeSettle(late, 90, 10)}, start + kHourUs + 80 * kSecondUs);
    Run({MakeCorrect("refund", CommandKind::kRefund, 123)}, start + 2 * kHourUs);
    Run({MakeAddCredit("dec", 7)}, UtcMonthStartUs(202512));
  }
  static Correct MakeCorrect(const std::string& id, CommandKind kind, int64_t amount_nano_usd) {
    Correct correct;
    correct.workspace = "ws";
    correct.command_id = id;
    correct.kind = kind;
    correct.amount_nano_usd = amount_nano_usd;
    correct.actor = "ann";
    correct.reason = "asked";
    return correct;
  }
  // October: a payment of 50 USD, of which 19.456 are left, is charged back. November: 40 USD more.
  // December: that is charged back, too, and what it leaves is written off.
  void FillChargeback() {
    policy_.second_person_above_nano_usd = INT64_MAX;
    const int64_t start = UtcMonthStartUs(202511);
    Run({MakeAddCredit("oct", 50'000'000'000)}, start - 9 * kHourUs);
    Run({MakeCorrect("debit", CommandKind::kDebitAdjustment, 30'544'000'000)}, start - 2 * kHourUs);
    Run({MakeCorrect("dispute", CommandKind::kChargeback, 50'000'000'000)}, start - kHourUs);
    Run({MakeAddCredit("nov", 40'000'000'000)}, start + kHourUs);
    Run({MakeCorrect("again", CommandKind::kChargeback, 40'000'000'000),
         MakeCorrect("off", CommandKind::kWriteOff, 30'544'000'000)},
        UtcMonthStartUs(202512));
  }
  std::string PdfText(const Statement& statement);
  Statement Read(int32_t month, int64_t now_us = UtcMonthStartUs(202601)) {
    auto statement = ReadStatement(*connection_, "ws", month, now_us);
    EXPECT_TRUE(statement.ok()) << statement.error().message;
    return statement.ok() ? std::move(*statement) : Statement();
  }
  // Without the number, which the statement gets when its month is closed.
  std::string Csv(int32_t month) {
    Statement statement = Read(month);
    statement.number.clear();
    return ToCsv(statement);
  }
};

TEST_P(StatementTest, AMonthThatHasNotEndedIsPreliminary) {
  Fill();
  const std::string ended = ToCsv(Read(202511));
  const std::string running = ToCsv(Read(202511, UtcMonthStartUs(202512) - kSecondUs));
  EXPECT_EQ(ended.find("preliminary"), std::string::npos);
  EXPECT_NE(running.find("preliminary,2025-11-30T23:59:59Z,,\r\n"), std::string::npos) << running;
}

TEST_P(StatementTest, TotalsEqualTheLedgerToTheUnit) {
  Fill();
  const Statement october = Read(202510);
  const Statement november = Read(202511);
  const Statement december = Read(202512);
  EXPECT_EQ(october.opening_nano_usd, 0);
  EXPECT_EQ(october.closing_nano_usd, 1'000'000'000 - 140);
  EXPECT_EQ(november.opening_nano_usd, october.closing_nano_usd);
  // The request from October costs 160; the ones in November 180 and 110.
  EXPECT_EQ(november.closing_nano_usd, november.opening_nano_usd + 90 - 160 - 180 - 110 - 123);
  EXPECT_EQ(december.opening_nano_usd, november.closing_nano_usd);
  int64_t paid = 0;
  auto read = connection_->Query("SELECT paid + granted FROM wallet", {},
                                 [&](const sql::Row& row) { paid = row.Int(0); });
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(december.closing_nano_usd, paid);
  ASSERT_EQ(november.by_model.size(), 2u);
  EXPECT_EQ(november.by_model[0].name, "model");
  EXPECT_EQ(november.by_model[0].requests, 2);
  EXPECT_EQ(november.by_model[0].amount_nano_usd, 160 + 110);
  EXPECT_EQ(november.by_key[1].amount_nano_usd, 180);

  EXPECT_EQ(ToCsv(november),
            "section,item,requests,amount_usd\r\n"
            "balance,\"opening\",,0.99999986\r\n"
            "movement,\"Granted credit\",,0.00000009\r\n"
            "movement,\"Refunds\",,-0.000000123\r\n"
            "movement,\"Usage\",,-0.00000045\r\n"
            "balance,\"closing\",,0.999999377\r\n"
            "usage_by_model,\"model\",2,0.00000027\r\n"
            "usage_by_model,\"other\",1,0.00000018\r\n"
            "usage_by_key,\"key\",2,0.00000027\r\n"
            "usage_by_key,\"second \"\"key\"\"\",1,0.00000018\r\n");
}

TEST_P(StatementTest, TheListHasTheTotalsOfEachMonth) {
  Fill();
  const int64_t now_us = UtcMonthStartUs(202602) + kSecondUs;
  auto list = ReadStatements(*connection_, "ws", now_us);
  ASSERT_TRUE(list.ok()) << list.error().message;
  ASSERT_EQ(list->size(), 5u);
  int32_t month = 202510;
  for (const Statement& listed : *list) {
    SCOPED_TRACE(listed.month);
    EXPECT_EQ(listed.month, month);
    month = month == 202512 ? 202601 : month + 1;
    const Statement read = Read(listed.month, now_us);
    EXPECT_EQ(listed.opening_nano_usd, read.opening_nano_usd);
    EXPECT_EQ(listed.closing_nano_usd, read.closing_nano_usd);
    EXPECT_EQ(listed.preliminary_us, read.preliminary_us);
    ASSERT_EQ(listed.movements.size(), read.movements.size());
    for (size_t i = 0; i < read.movements.size(); ++i) {
      EXPECT_EQ(listed.movements[i].name, read.movements[i].name);
      EXPECT_EQ(listed.movements[i].amount_nano_usd, read.movements[i].amount_nano_usd);
    }
  }
  auto early = ReadStatements(*connection_, "nobody", now_us);
  ASSERT_TRUE(early.ok());
  ASSERT_EQ(early->size(), 1u) << "the running month";
  EXPECT_EQ(early->back().closing_nano_usd, 0);
}

TEST_P(StatementTest, AStatementShowsWhatIsOwedAfterAChargeback) {
  FillChargeback();
  const auto expect = [&] {
    EXPECT_EQ(ToCsv(Read(202509)).find("owed"), std::string::npos);
    EXPECT_EQ(Csv(202510),
              "section,item,requests,amount_usd\r\n"
              "balance,\"opening\",,0\r\n"
              "movement,\"Adjustments to your debit\",,-30.544\r\n"
              "movement,\"Chargebacks\",,-19.456\r\n"
              "movement,\"Top-ups\",,50\r\n"
              "balance,\"closing\",,0\r\n"
              "owed,\"opening\",,0\r\n"
              "owed_movement,\"Chargebacks\",,30.544\r\n"
              "owed,\"closing\",,30.544\r\n");
    EXPECT_EQ(Csv(202511),
              "section,item,requests,amount_usd\r\n"
              "balance,\"opening\",,0\r\n"
              "movement,\"Paid for earlier chargebacks\",,-30.544\r\n"
              "movement,\"Top-ups\",,40\r\n"
              "balance,\"closing\",,9.456\r\n"
              "owed,\"opening\",,30.544\r\n"
              "owed_movement,\"Paid for earlier chargebacks\",,-30.544\r\n"
              "owed,\"closing\",,0\r\n");
    EXPECT_EQ(Csv(202512),
              "section,item,requests,amount_usd\r\n"
              "balance,\"opening\",,9.456\r\n"
              "movement,\"Chargebacks\",,-9.456\r\n"
              "balance,\"closing\",,0\r\n"
              "owed,\"opening\",,0\r\n"
              "owed_movement,\"Chargebacks\",,30.544\r\n"
              "owed_movement,\"Written off\",,-30.544\r\n"
              "owed,\"closing\",,0\r\n");
    EXPECT_EQ(ToCsv(Read(202601)).find("owed"), std::string::npos);
    auto list = ReadStatements(*connection_, "ws", UtcMonthStartUs(202512));
    ASSERT_TRUE(list.ok()) << list.error().message;
    ASSERT_EQ(list->size(), 3u);
    EXPECT_EQ(list->front().closing_receivable_nano_usd, 30'544'000'000);
    ExpectVerified();
  };
  expect();
  ASSERT_TRUE(FoldLedger(*connection_).ok());
  expect();
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ("statement-owed-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  auto archived = ArchiveLedger(
      *connection_, {202511, folder.string(), "ann", UtcMonthStartUs(202511) + 10 * kDayUs});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(archived.ok()) << archived.error().message;
  ASSERT_EQ(archived->size(), 1u);
  expect();
}

TEST_P(StatementTest, ALedgerOfThePreviousVersionLearnsWhatIsOwed) {
  FillChargeback();
  ASSERT_TRUE(FoldLedger(*connection_).ok());
  const std::string before = ToCsv(Read(202510));
  EXPECT_NE(before.find("30.544"), std::string::npos);
  // A process of the previous version, which runs during an update, has made the roll-ups.
  auto reverted = connection_->ExecuteScript(
      "UPDATE statement_month SET receivable = 0; UPDATE rollup_cut SET receivables = 0");
  ASSERT_TRUE(reverted.ok()) << reverted.error().message;
  ExpectVerified();
  EXPECT_EQ(ToCsv(Read(202510)), before);
  ASSERT_TRUE(FoldLedger(*connection_).ok());
  ExpectVerified();
  EXPECT_EQ(ToCsv(Read(202510)), before);
  int64_t owed = -1;
  auto read = connection_->Query(
      "SELECT receivable FROM statement_month WHERE month = 202510 AND receivable <> 0", {},
      [&](const sql::Row& row) { owed = row.Int(0); });
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(owed, 30'544'000'000);
}

TEST_P(StatementTest, ThePdfShowsWhatIsOwed) {
  FillChargeback();
  const std::string text = PdfText(Read(202510));
  for (const char* words : {"Owed at the start", "Owed at the end", "30.544 USD"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

std::string StatementTest::PdfText(const Statement& statement) {
  const std::string file = ::testing::TempDir() + "/statement-" + std::to_string(getpid());
  std::ofstream(file, std::ios::binary) << ToPdf(statement);
  const std::string output = file + ".txt";
  std::vector<std::string> command = {"pdftotext", "-layout", file, output};
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = 0;
  EXPECT_EQ(posix_spawnp(&pid, "pdftotext", nullptr, nullptr, argv.data(), environ), 0)
      << "poppler-utils is needed";
  int status = -1;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  std::stringstream read;
  read << std::ifstream(output).rdbuf();
  std::filesystem::remove(file);
  std::filesystem::remove(output);
  return read.str();
}

TEST_P(StatementTest, ThePdfShowsTheTotals) {
  Fill();
  const std::string text = PdfText(Read(202511));
  for (const char* words :
       {"Statement 2025-11", "Workspace ws", "Opening balance", "0.99999986 USD", "Closing balance",
        "0.999999377 USD", "Refunds", "-0.000000123 USD", "2 requests", "0.00000045 USD"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

TEST_P(StatementTest, ALongPdfHasMorePages) {
  Statement statement;
  for (int i = 0; i < 200; ++i) statement.by_key.push_back({"key" + std::to_string(i), 1, 5});
  const std::string pdf = ToPdf(statement);
  EXPECT_TRUE(pdf.starts_with("%PDF-"));
  EXPECT_NE(pdf.find("/Count 5"), std::string::npos);
}

TEST_P(StatementTest, AClosedStatementHasANumberAndDoesNotChange) {
  Fill();
  const int64_t close_us = UtcMonthStartUs(202512) + kCloseAfterUs;
  EXPECT_EQ(Read(202511, close_us).number, "") << "it is not closed yet";
  ASSERT_TRUE(FoldLedger(*connection_, close_us - 1).ok());
  EXPECT_EQ(Read(202510, close_us - 1).number, "ws-2025-10");
  EXPECT_EQ(Read(202511, close_us - 1).number, "");
  Run({MakeAddCredit("more", 5)}, close_us - 1);
  ASSERT_TRUE(FoldLedger(*connection_, close_us).ok());
  const Statement before = Read(202511, close_us);
  EXPECT_EQ(before.number, "ws-2025-11");
  EXPECT_EQ(ToCsv(before).find("section,item,requests,amount_usd\r\nnumber,\"ws-2025-11\",,\r\n"),
            0u);
  EXPECT_NE(PdfText(before).find("Number ws-2025-11"), std::string::npos);
  EXPECT_EQ(Read(202509, close_us).number, "") << "before the first entry";
  ExpectVerified();

  // A clock is set back, so the next entry has a date in November.
  Run({RepairClock{"ws", "repair", "ann", "time server"}}, close_us - 20 * kDayUs);
  Run({MakeAddCredit("back", 11)}, close_us - 20 * kDayUs);
  for (const bool folded : {false, true}) {
    SCOPED_TRACE(folded);
    if (folded) ASSERT_TRUE(FoldLedger(*connection_, close_us).ok());
    EXPECT_EQ(ToCsv(Read(202511)), ToCsv(before));
    EXPECT_EQ(Read(202512).opening_nano_usd, before.closing_nano_usd);
    EXPECT_EQ(Read(202512).closing_nano_usd, before.closing_nano_usd + 7 + 5 + 11);
    ExpectVerified();
  }
  // Roll-ups that are built again have the same statements.
  for (const std::string_view table : kRollUpNames) {
    ASSERT_TRUE(connection_->Execute("DELETE FROM " + std::string(table)).ok());
  }
  ASSERT_TRUE(FoldLedger(*connection_, close_us).ok());
  EXPECT_EQ(ToCsv(Read(202511)), ToCsv(before));
  ExpectVerified();
}

TEST_P(StatementTest, AMonthWithoutEntriesHasANumberToo) {
  Fill();
  ASSERT_TRUE(FoldLedger(*connection_, UtcMonthStartUs(202601) + kCloseAfterUs).ok());
  EXPECT_EQ(Read(202603, UtcMonthStartUs(202604)).number, "") << "it is not closed yet";
  EXPECT_EQ(Read(202603, UtcMonthStartUs(202604) + kCloseAfterUs).number, "ws-2026-03");
}

TEST_P(StatementTest, AnArchivedMonthKeepsItsStatement) {
  Fill();
  ASSERT_TRUE(FoldLedger(*connection_, UtcMonthStartUs(202512) + kHourUs).ok());
  const Statement archived_before = Read(202510);
  const Statement before = Read(202511);
  const auto folder = std::filesystem::path(::testing::TempDir()) /
                      ("statement-archive-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  auto archived = ArchiveLedger(
      *connection_, {202511, folder.string(), "ann", UtcMonthStartUs(202512) + kHourUs});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(archived.ok()) << archived.error().message;
  ASSERT_EQ(archived->size(), 1u);
  EXPECT_EQ(ToCsv(Read(202511)), ToCsv(before));
  EXPECT_EQ(ToCsv(Read(202510)), ToCsv(archived_before)) << "the roll-ups keep it";
  auto list = ReadStatements(*connection_, "ws", UtcMonthStartUs(202512));
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->size(), 3u);

  // Roll-ups that are built again begin at the cut.
  for (const std::string_view table : kRollUpNames) {
    ASSERT_TRUE(connection_->Execute("DELETE FROM " + std::string(table)).ok());
  }
  ASSERT_TRUE(FoldLedger(*connection_).ok());
  EXPECT_EQ(ToCsv(Read(202511)), ToCsv(before));
  auto refused = ReadStatement(*connection_, "ws", 202510, UtcMonthStartUs(202601));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("is archived"), std::string::npos);
  list = ReadStatements(*connection_, "ws", UtcMonthStartUs(202512));
  ASSERT_TRUE(list.ok()) << list.error().message;
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ(list->front().month, 202511);
  EXPECT_EQ(list->front().opening_nano_usd, before.opening_nano_usd);
  EXPECT_EQ(list->front().closing_nano_usd, before.closing_nano_usd);
}

INSTANTIATE_TEST_SUITE_P(Both, StatementTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
