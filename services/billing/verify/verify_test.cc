// The verification finds and names each kind of tampering with the ledger's rows.
#include "services/billing/verify/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "services/billing/domain/chain.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

constexpr const char* kTables[] = {"entry",        "wallet",     "cap_month", "hold",
                                   "usage_record", "command",    "key_month", "usage_quarter",
                                   "usage_day",    "dead_letter"};

struct Tampering {
  const char* change;
  const char* named;  // part of a violation
};

constexpr Tampering kTampering[] = {
    // Entries and their chain.
    {"UPDATE entry SET amount = amount + 1 WHERE sequence = 1", "entry 1 does not match its hash"},
    {"UPDATE entry SET memo = 'x' WHERE sequence = 1", "entry 1 does not match its hash"},
    {"UPDATE entry SET detail = hash WHERE sequence = 1", "entry 1 does not match its hash"},
    {"UPDATE entry SET month = month + 1 WHERE kind = 3", "counts towards"},
    {"UPDATE entry SET at_us = at_us - 1 WHERE sequence = 3", "entry 3 is older"},
    {"UPDATE entry SET debit = 1 WHERE kind = 9",
     "of kind charge has wrong accounts: from funding to revenue"},
    {"UPDATE entry SET kind = 99 WHERE sequence = 2", "entry 2 is of an unknown kind"},
    {"DELETE FROM entry WHERE sequence = (SELECT max(sequence) FROM entry)",
     "the last sequence is"},
    {"DELETE FROM entry WHERE sequence = 2", "entry 3 follows 1: entries are missing"},
    // The wallet.
    {"UPDATE wallet SET paid = paid + 1", "paid credit is"},
    {"UPDATE wallet SET granted = granted + 1", "granted credit is"},
    {"UPDATE wallet SET held = held - 1", "the held amount is"},
    {"UPDATE wallet SET receivable = 0", "the receivable is 0"},
    {"UPDATE wallet SET open_holds = 0", "the number of open holds is 0"},
    {"UPDATE wallet SET cap = NULL", "the cap is -1"},
    {"UPDATE wallet SET frozen = 0", "the freeze is 0"},
    {"UPDATE wallet SET clock_us = clock_us + 1", "the clock is"},
    {"UPDATE wallet SET head = (SELECT hash FROM entry WHERE sequence = 1 AND entry.shard ="
     " wallet.shard AND entry.workspace = wallet.workspace)",
     "head of the chain"},
    {"DELETE FROM wallet", "rows of entry have no wallet"},
    {"INSERT INTO wallet SELECT shard, 'other', paid, granted, 0, 0, 0, cap, frozen, sequence,"
     " head, clock_us, 0, 0 FROM wallet",
     "workspace other: rows of wallet with shard"},
    {"UPDATE command SET shard = shard + 1", "rows of command with shard"},
    // Months.
    {"UPDATE cap_month SET spent = spent + 1", "spend of month"},
    {"UPDATE cap_month SET held = 0", "the held amount of month"},
    {"DELETE FROM cap_month", "cap_month: no row for month"},
    {"INSERT INTO cap_month SELECT shard, workspace, 202001, 0, 0 FROM wallet",
     "no entry is of month 202001"},
    {"UPDATE key_month SET spent = spent + 1", "(key_month) spent is"},
    {"UPDATE key_month SET held = held + 1", "(key_month) held is"},
    {"INSERT INTO key_month SELECT shard, workspace, 'idle', 202001, 5, 0 FROM wallet",
     "key idle in month 202001 (key_month) spent is 5"},
    // Holds.
    {"UPDATE hold SET authorized = authorized + 1 WHERE state = 1", "authorized is"},
    {"UPDATE hold SET first_authorized = 1 WHERE state = 1", "first authorized is 1"},
    {"UPDATE hold SET charged = charged - 1 WHERE state = 2", "charged is"},
    {"UPDATE hold SET charged_granted = 1 WHERE state = 2", "charged to granted credit is 1"},
    {"UPDATE hold SET state = 2 WHERE state = 1", "terminal entry is"},
    {"UPDATE hold SET month = 202401 WHERE state = 2", "has the month of another time"},
    {"UPDATE hold SET price_version = price_version + 1 WHERE state = 1", "price version, bounds"},
    {"UPDATE hold SET input_pico = input_pico + 1 WHERE state = 1", "rates, price version"},
    {"UPDATE hold SET key_id = 'other' WHERE state = 1", "key, model, rates"},
    {"UPDATE hold SET outcome = 4 WHERE state = 2",
     "engine, flags or answering model are not those"},
    {"UPDATE hold SET completion = completion + 1 WHERE state = 2", "usage, outcome, engine"},
    {"UPDATE hold SET closed_us = closed_us + 1 WHERE state = 2", "time of closing is"},
    {"UPDATE hold SET workspace = 'other' WHERE state = 2", "is of workspace other"},
    {"DELETE FROM hold WHERE state = 2", "no hold for the entries of"},
    {"INSERT INTO hold ({hold}) SELECT {hold_copy} FROM hold WHERE state = 1", "has no entry"},
    // Usage records.
    {"DELETE FROM usage_record", "no usage record for hold"},
    {"INSERT INTO usage_record ({usage}) SELECT {usage_copy} FROM usage_record WHERE charged = 140",
     "usage_record 00000000000000000000000000000001 has no entry"},
    {"UPDATE usage_record SET completion = completion + 1", "completion is"},
    {"UPDATE usage_record SET charged = charged + 1", "is not charged the price of its tokens"},
    {"UPDATE usage_record SET cost_pico = '1'", "the exact cost of its tokens"},
    {"UPDATE usage_record SET key_id = 'other'", "names another key"},
    {"UPDATE usage_record SET model = 'other'", "names another model"},
    {"UPDATE usage_record SET engine = 'other'", "names another engine"},
    {"UPDATE usage_record SET day = day + 1", "day is"},
    {"UPDATE usage_record SET admitted_us = admitted_us - 1", "time of admission is"},
    {"UPDATE usage_record SET cached = cached + 1", "cached tokens is"},
    {"UPDATE usage_record SET reasoning = reasoning + 1", "reasoning tokens is"},
    {"UPDATE usage_record SET output_pico = output_pico + 1", "output rate is"},
    {"UPDATE usage_record SET price_version = 9", "price version is 9"},
    {"UPDATE usage_record SET outcome = 2", "outcome is 2"},
    {"UPDATE usage_record SET estimated = 1", "estimated is 1"},
    {"UPDATE usage_record SET client_request_id = 'other'", "has another x-request-id"},
    // Roll-ups.
    {"UPDATE usage_quarter SET charged = charged + 1", "charged is"},
    {"UPDATE usage_day SET requests = requests + 1", "requests is"},
    {"DELETE FROM usage_day", "usage_day of key key, model model, period"},
    {"INSERT INTO usage_quarter SELECT shard, workspace, 'idle', model, period, requests,"
     " free_requests, prompt, cached, cache_write, completion, reasoning, charged, overrun"
     " FROM usage_quarter",
     "usage_quarter of key idle"},
    // Commands.
    {"UPDATE command SET amount = amount + 1 WHERE id = 'c'", "command c amount is"},
    {"UPDATE command SET granted = 1 WHERE id = 'c'", "command c granted is 1"},
    {"UPDATE command SET cap = cap + 1 WHERE id = 'cap'", "command cap: kind, amount, cap"},
    {"UPDATE command SET actor = 'other' WHERE id = 'back'",
     "command back: kind, amount, cap, actor"},
    {"UPDATE command SET reason = 'other' WHERE id = 'wait'", "reason or reference are not those"},
    {"UPDATE command SET state = 1 WHERE id = 'wait'", "command wait state is 1"},
    {"UPDATE command SET state = 2 WHERE id = 'no'", "command no state is 2"},
    {"UPDATE command SET decided_by = 'eve' WHERE id = 'yes'",
     "command yes names another person for its decision"},
    {"UPDATE command SET at_us = at_us + 1 WHERE id = 'c'", "command c time is"},
    {"DELETE FROM command WHERE id = 'c'", "no command for the entries of c"},
    {"INSERT INTO command SELECT shard, workspace, 'stray', kind, amount, granted, cap, at_us, "
     "state,"
     " actor, reason, reference, decided_by, decided_us FROM command WHERE id = 'c'",
     "command stray has no entry"},
    // Dead letters.
    {"INSERT INTO dead_letter SELECT shard, id, 1, workspace, created_us, 1, id, 1, 5, '', ''"
     " FROM hold WHERE state = 1",
     "number 1 is open but was resolved"},
};

// A ledger with every kind of row, and a copy to restore it from.
class VerifyTest : public LedgerDatabaseTest {
 protected:
  void SetUp() override {
    LedgerDatabaseTest::SetUp();
    if (!connection_) return;
    policy_.second_person_above_nano_usd = 1'000;
    const auto correct = [](const char* id, CommandKind kind, int64_t amount) {
      Correct op;
      op.workspace = "ws";
      op.command_id = id;
      op.kind = kind;
      op.amount_nano_usd = amount;
      op.actor = "ann";
      op.reason = "because";
      return op;
    };
    Authorize quota = MakeAuthorize(TestId(1, kNowUs), 100, 50);
    quota.key_quota_nano_usd = 1'000'000;
    Authorize open = MakeAuthorize(TestId(2, kNowUs), 100, 50);
    open.key_quota_nano_usd = 1'000'000;
    const Id late = TestId(3, kNowUs);
    const Id free = TestId(4, kNowUs);
    Run({MakeAddCredit("c", 100'000), MakeSetCap("cap", 90'000), quota});
    Run({open, MakeAuthorize(late, 100, 50), MakeAuthorize(free, 100, 50)}, kNowUs + 1);
    Run({MakeSettle(quota.request_id, 100, 20), MakeVoid(free)}, kNowUs + 2);
    Run({MakeHeartbeat(open.request_id, 1, 10, 10)}, kNowUs + 30 * kSecondUs);
    Run({MakeExpire(late)}, kNowUs + 62 * kSecondUs);
    Run({MakeSettle(late, 100, 40)}, kNowUs + 63 * kSecondUs);
    Run({correct("wait", CommandKind::kRefund, 2'000), correct("yes", CommandKind::kRefund, 3'000),
         correct("no", CommandKind::kRefund, 4'000)},
        kNowUs + 64 * kSecondUs);
    Run({Decide{"ws", "yes", true, "bob", "fine"}, Decide{"ws", "no", false, "bob", "not so"}},
        kNowUs + 65 * kSecondUs);
    Run({correct("back", CommandKind::kChargeback, 200'000)}, kNowUs + 66 * kSecondUs);
    for (const char* table : kTables) {
      Must("CREATE TABLE saved_" + std::string(table) + " AS SELECT * FROM " + table);
    }
  }
  void Must(const std::string& script) {
    auto done = connection_->ExecuteScript(script);
    ASSERT_TRUE(done.ok()) << done.error().message << "\n" << script;
  }
  void Restore() {
    for (const std::string table : kTables) {
      Must("DELETE FROM " + table + "; INSERT INTO " + table + " SELECT * FROM saved_" + table);
    }
  }
  std::vector<std::string> Violations() {
    auto report = VerifyLedger(*database_);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? report->violations : std::vector<std::string>();
  }
  // Replaces the placeholders: all columns of the table's row, with another id.
  std::string Fill(std::string text) {
    const std::string id = GetParam() == sql::Dialect::kSqlite
                               ? "x'00000000000000000000000000000001'"
                               : "'\\x00000000000000000000000000000001'::bytea";
    for (const auto& [word, columns] :
         {std::pair<std::string, std::string>("hold", kHoldColumns),
          std::pair<std::string, std::string>("usage", kUsageColumns)}) {
      std::string copy = columns;
      copy.replace(copy.find(" id,"), 4, " " + id + ",");
      for (const auto& [name, with] :
           {std::pair("{" + word + "}", columns), std::pair("{" + word + "_copy}", copy)}) {
        const size_t at = text.find(name);
        if (at != std::string::npos) text.replace(at, name.size(), with);
      }
    }
    return text;
  }
};

TEST_P(VerifyTest, FindsAndNamesEveryKindOfTampering) {
  ASSERT_NO_FATAL_FAILURE(ExpectVerified());
  for (const Tampering& tampering : kTampering) {
    auto changed = connection_->Execute(Fill(tampering.change));
    // Citus refuses to move a row to another shard.
    if (connection_->distributed() && !changed.ok() &&
        changed.error().message.find("partition value") != std::string::npos) {
      continue;
    }
    EXPECT_TRUE(changed.ok()) << tampering.change << ": " << changed.error().message;
    if (!changed.ok()) continue;
    EXPECT_GT(*changed, 0) << tampering.change;
    std::string all;
    for (const std::string& violation : Violations()) all += violation + '\n';
    EXPECT_NE(all.find(tampering.named), std::string::npos) << tampering.change << "\nfound:\n"
                                                            << all;
    Restore();
  }
  ExpectVerified();
}

// An attacker who can compute hashes drops the details: the chain is valid but proves less.
TEST_P(VerifyTest, FindsAChainThatWasComputedAnewWithoutDetails) {
  std::vector<Entry> entries;
  auto read =
      connection_->Query("SELECT " + std::string(kEntryColumns) + " FROM entry ORDER BY sequence",
                         {}, [&](const sql::Row& row) { entries.push_back(ReadEntry(row)); });
  ASSERT_TRUE(read.ok());
  std::string head(32, '\0');
  Must("DELETE FROM entry");
  Cells cells(entries.size(), kEntryCount);
  for (Entry& entry : entries) {
    if (entry.sequence > 5) entry.detail.clear();
    entry.hash = EntryHash(head, entry);
    head = entry.hash;
    cells.Add(entry);
  }
  auto written = connection_->ExecuteRows(
      "INSERT INTO entry (" + std::string(kEntryColumns) + ") VALUES", kEntryCount, cells.view());
  ASSERT_TRUE(written.ok()) << written.error().message;
  auto set = connection_->Execute("UPDATE wallet SET head = $1", {sql::Param::Blob(head)});
  ASSERT_TRUE(set.ok());
  const std::vector<std::string> found = Violations();
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].find("has no detail, though entries before it have"), std::string::npos)
      << found[0];
}

TEST_P(VerifyTest, FindsHoldsThatStayedOpenAfterTheirExpiry) {
  VerifyOptions options;
  options.overdue_holds = true;
  auto report = VerifyLedger(*connection_, options);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->ok()) << report->violations[0];
  Run({MakeAddCredit("much later", 1)}, kNowUs + kHourUs);
  report = VerifyLedger(*connection_, options);
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->violations.size(), 1u);
  EXPECT_NE(report->violations[0].find("after its expiry"), std::string::npos);
}

// Stopped after every page and resumed with the state file, with tampering before and after the
// stop: the result equals that of one run.
TEST_P(VerifyTest, GoesOnWhereItWasStopped) {
  Must("UPDATE hold SET price_version = 9 WHERE state = 2; UPDATE usage_day SET charged = 0");
  const std::vector<std::string> expected = Violations();
  ASSERT_GE(expected.size(), 2u);
  VerifyOptions options;
  options.page_entries = 3;
  options.state_file = ::testing::TempDir() + "/verify-state-" + std::to_string(getpid());
  std::filesystem::remove(options.state_file);
  options.progress = [](const VerifyReport&, const std::string&) { return false; };
  int stops = 0;
  VerifyReport last;
  for (last.stopped = true; last.stopped && stops < 100; ++stops) {
    auto report = VerifyLedger(*connection_, options);
    ASSERT_TRUE(report.ok()) << report.error().message;
    last = std::move(*report);
    if (!last.stopped) break;
    EXPECT_FALSE(last.ok()) << "a stopped run proves nothing";
    EXPECT_TRUE(std::filesystem::exists(options.state_file));
    // More entries arrive while the run is stopped.
    if (stops == 1) Run({MakeAddCredit("meanwhile", 5)}, kNowUs + kHourUs);
    if (last.entries >= 20) options.progress = nullptr;
  }
  EXPECT_GT(stops, 5);
  EXPECT_EQ(last.violations, expected);
  EXPECT_FALSE(std::filesystem::exists(options.state_file));

  std::ofstream(options.state_file) << "tollgate verify 1\nnot what a run writes, long enough here";
  auto damaged = VerifyLedger(*connection_, options);
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.error().message.find("is damaged"), std::string::npos);
  std::filesystem::remove(options.state_file);
}

INSTANTIATE_TEST_SUITE_P(Both, VerifyTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
