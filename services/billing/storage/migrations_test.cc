// A ledger of the first version keeps its rows and its chain.
#include <gtest/gtest.h>

#include "common/base/ledger_shard.h"
#include "services/billing/domain/chain.h"
#include "services/billing/reports/reports.h"
#include "services/billing/reports/rollups.h"
#include "services/billing/storage/rollup_tables.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

class MigrationsTest : public LedgerDatabaseTest {
 protected:
  // Writes the state like the first version: without shards and details.
  void WriteFirstVersion(State& state, std::vector<Entry> entries) {
    std::string head(32, '\0');
    for (Entry& e : entries) {
      e.detail.clear();
      e.hash = head = EntryHash(head, e);
      Must("INSERT INTO entry VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11)",
           {e.workspace, e.sequence, static_cast<int>(e.kind), sql::Param::Blob(e.request),
            static_cast<int>(e.debit), static_cast<int>(e.credit), e.amount_nano_usd, e.month,
            e.at_us, e.memo, sql::Param::Blob(e.hash)});
    }
    const Wallet& w = state.wallets.at("ws");
    Must("INSERT INTO wallet VALUES ($1,$2,$3,$4,$5,$6,0,$7,$8,$9)",
         {w.workspace, w.paid_nano_usd, w.granted_nano_usd, w.held_nano_usd, w.open_holds,
          w.cap_nano_usd, w.sequence, sql::Param::Blob(head), w.clock_us});
    for (const auto& [key, m] : state.months) {
      Must("INSERT INTO cap_month VALUES ($1,$2,$3,$4,$5)",
           {key, m.workspace, m.month, m.spent_nano_usd, m.held_nano_usd});
    }
    for (const auto& [id, h] : state.holds) WriteHold(h);
    Must("INSERT INTO command VALUES ('ws:c','ws','c',6,100000,0,NULL,$1)", {kNowUs});
  }

  void WriteHold(const Hold& h) {
    const std::string id = h.id.ToBytes();
    Must(
        "INSERT INTO hold VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,"
        "$19,$20,$21,$22,$23,$24,$25,$26,$27,$28,$29,$30)",
        {sql::Param::Blob(id),
         h.workspace,
         static_cast<int>(h.state),
         h.key_id,
         h.model,
         h.rates.input_pico_usd,
         h.rates.output_pico_usd,
         h.price_version,
         h.prompt_bound,
         h.output_bound,
         h.month,
         h.cap_nano_usd,
         h.first_authorized_nano_usd,
         h.authorized_nano_usd,
         h.created_us,
         h.expires_us,
         h.sequence,
         h.usage.prompt,
         h.usage.cached,
         h.usage.cache_write,
         h.usage.completion,
         h.usage.reasoning,
         static_cast<int>(h.outcome),
         h.cut_by_credit,
         h.estimated,
         h.engine,
         h.charged_nano_usd,
         h.charged_granted_nano_usd,
         h.overrun_nano_usd,
         h.closed_us});
    if (h.state == HoldState::kOpen) return;
    const std::string cost = std::to_string(static_cast<int64_t>(h.CostPicoUsd()));
    Must(
        "INSERT INTO usage_record VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,"
        "$17,$18,$19,$20,$21,$22,$23,$24)",
        {sql::Param::Blob(id),
         h.workspace,
         h.key_id,
         h.model,
         h.engine,
         h.month,
         UtcDay(h.created_us),
         h.created_us,
         h.closed_us,
         h.usage.prompt,
         h.usage.cached,
         h.usage.cache_write,
         h.usage.completion,
         h.usage.reasoning,
         h.rates.input_pico_usd,
         h.rates.output_pico_usd,
         h.price_version,
         cost,
         h.charged_nano_usd,
         h.overrun_nano_usd,
         static_cast<int>(h.state),
         static_cast<int>(h.outcome),
         h.cut_by_credit,
         h.estimated});
  }

  void Must(std::string_view text, std::initializer_list<sql::Param> params) {
    auto done = connection_->Execute(text, params);
    ASSERT_TRUE(done.ok()) << done.error().message << "\n" << text;
  }
};

TEST_P(MigrationsTest, KeepsTheRowsOfTheFirstVersion) {
  // Resets to an empty database with the first version's tables.
  for (const char* table :
       {"wallet", "cap_month", "key_month", "hold", "entry", "command", "usage_record",
        "usage_quarter", "usage_day", "audit_outbox", "dead_letter", "archive", "archive_workspace",
        "archive_run", "idempotency", "lease", "statement_close"}) {
    Must("DROP TABLE " + std::string(table), {});
  }
  for (const std::string_view table : kRollUpNames) Must("DROP TABLE " + std::string(table), {});
  Must("DELETE FROM schema_migration WHERE component = 'billing'", {});
  ASSERT_TRUE(database_->Migrate(kSchemaComponent, Migrations().first(1)).ok());

  World world;
  world.now_us = kNowUs;
  std::vector<Entry> entries;
  const auto run = [&](const Operation& operation) {
    EXPECT_TRUE(world.Do(operation).ok);
    entries.insert(entries.end(), world.last.entries.begin(), world.last.entries.end());
  };
  run(MakeAddCredit("c", 100'000));
  const Id open = world.NewId();
  const Id closed = world.NewId();
  run(MakeAuthorize(open, 100, 100));
  run(MakeAuthorize(closed, 100, 100));
  run(MakeSettle(closed, 100, 40));
  // All other credit is held, so that what a request costs above its hold is overrun.
  const Id over = world.NewId();
  const Id rest = world.NewId();
  run(MakeAuthorize(over, 100, 100));
  run(MakeAuthorize(rest, world.wallet().available_nano_usd(), 0));
  run(MakeSettle(over, 100, 400));
  ASSERT_GT(world.hold(over).overrun_nano_usd, 0);
  WriteFirstVersion(world.state, entries);

  const auto migrated = MigrateLedger(*database_);
  ASSERT_TRUE(migrated.ok()) << migrated.error().message;
  ExpectVerified();
  auto report = ReadUsage(*database_, "ws", "key", 0, INT64_MAX, kNowUs);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->total.requests, 2);
  EXPECT_EQ(report->total.charged_nano_usd, 180 + world.hold(over).charged_nano_usd);
  // The hold can be settled, and the command is recognized.
  EXPECT_TRUE(Run({MakeSettle(open, 100, 20)}).replies.front().ok);
  EXPECT_TRUE(Run({MakeAddCredit("c", 100'000)}).entries.empty());
  ExpectVerified();
  const auto rolled_up = FoldLedger(*connection_);
  ASSERT_TRUE(rolled_up.ok()) << rolled_up.error().message;
  ExpectVerified();
}

TEST_P(MigrationsTest, PartitionsOfOtherMonthsAreMadeOnce) {
  for (int i = 0; i < 2; ++i) {
    const auto made = EnsurePartitions(*connection_, kNowUs + 90LL * 24 * 3'600'000'000);
    EXPECT_TRUE(made.ok()) << made.error().message;
  }
}

// The query for them runs often.
TEST_P(MigrationsTest, FrozenWalletsAreFoundByTheirIndex) {
  const bool sqlite = GetParam() == sql::Dialect::kSqlite;
  if (!sqlite) {
    // PostgreSQL would scan an empty table.
    ASSERT_TRUE(connection_->ExecuteScript("SET enable_seqscan = off").ok());
  }
  std::string plan;
  auto read =
      connection_->Query(std::string(sqlite ? "EXPLAIN QUERY PLAN" : "EXPLAIN") +
                             " SELECT workspace FROM wallet WHERE frozen = 3",
                         {}, [&](const sql::Row& row) { plan += row.Text(sqlite ? 3 : 0); });
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_NE(plan.find("wallet_frozen"), std::string::npos) << plan;
}

INSTANTIATE_TEST_SUITE_P(Both, MigrationsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
