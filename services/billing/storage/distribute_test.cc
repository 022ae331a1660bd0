// An existing ledger is distributed over the servers of Citus (docs/adr/0040). Without Citus only
// the refusals are tested.
#include "services/billing/storage/distribute.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

#include "common/audit/log.h"
#include "common/base/ledger_shard.h"
#include "services/billing/alerts/alert_store.h"
#include "services/billing/payments/payment_store.h"
#include "services/billing/command/all_schemas.h"
#include "services/billing/storage/audit_outbox.h"
#include "services/billing/command/ledger_command.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/testing/ledger_database.h"
#include "services/billing/storage/wallet_check.h"

namespace tollgate::billing {
namespace {

constexpr int64_t kNowUs = 1'763'700'000'000'000;

TEST(DistributeTest, IsRefusedOnAServerWithoutCitus) {
  auto* server = testing::TestPostgres::Shared();
  if (!server) {
    ASSERT_FALSE(testing::TestPostgres::Required());
    GTEST_SKIP() << "PostgreSQL is not installed";
  }
  if (server->workers() > 0) GTEST_SKIP() << "the server has Citus";
  const auto database = *sql::Database::Open({.url = server->MakeDatabase("plain")});
  const auto connection = *database->Connect();
  EXPECT_FALSE(*IsDistributed(*connection));
  const auto plan = PlanDistribution(*connection);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().message.find("lacks the extension citus"), std::string::npos);
}

class DistributeOnCitusTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = testing::TestPostgres::StartCitus(2).release(); }
  static void TearDownTestSuite() { delete server_; }
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << "Citus is not installed";
    database_ = *sql::Database::Open({.url = server_->MakeDatabase("ledger")});
    connection_ = *database_->Connect();
  }
  std::string Refusal() {
    const auto plan = PlanDistribution(*connection_);
    return plan.ok() ? "" : plan.error().message;
  }
  Applied Run(const std::vector<Operation>& operations, int64_t now_us = kNowUs) {
    auto applied = RunBatch(*connection_, operations, now_us, Policy());
    EXPECT_TRUE(applied.ok()) << applied.error().message;
    return applied.ok() ? std::move(*applied) : Applied();
  }
  int64_t Number(const std::string& text) {
    int64_t number = -1;
    auto read = connection_->Query(text, {}, [&](const sql::Row& row) { number = row.Int(0); });
    EXPECT_TRUE(read.ok()) << read.error().message;
    return number;
  }
  // Moves the workspace's piece to the other worker.
  void MoveThePieceOf(const std::string& workspace) {
    const std::string move =
        "SELECT citus_move_shard_placement(s.shardid, s.nodename, 5432, n.nodename, 5432,"
        " 'force_logical') FROM citus_shards s JOIN pg_dist_node n ON n.nodename <> s.nodename"
        " AND n.shouldhaveshards WHERE s.table_name = 'wallet'::regclass AND s.shardid ="
        " get_shard_id_for_distribution_column('wallet', " +
        std::to_string(LedgerShard(workspace)) + "::bigint)";
    // On a busy machine Citus may fail to lock and drop what an earlier move has left behind.
    sql::SqlResult<void> moved = connection_->ExecuteScript(move);
    for (int i = 0;
         i < 50 && !moved.ok() && moved.error().message.find("cleaned up") != std::string::npos;
         ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      moved = connection_->ExecuteScript(move);
    }
    EXPECT_TRUE(moved.ok()) << moved.error().message;
  }
  // Number of tables and partitions that are still ordinary tables of the coordinator.
  int64_t Left() {
    return Number(
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'public' AND tablename <>"
        " 'schema_migration' AND NOT EXISTS (SELECT 1 FROM pg_dist_partition WHERE logicalrelid ="
        " tablename::regclass)");
  }
  // Returns the output of `tollgate ledger distribute`.
  std::string Distribute(std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"tollgate-billing", "distribute", "--database", database_->options().url});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    ::testing::internal::CaptureStdout();
    const auto code = RunLedgerCommand(static_cast<int>(argv.size()), argv.data(), AllSchemas());
    std::fflush(stdout);
    const std::string printed = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(code, 0) << printed;
    return printed;
  }
  static AddCredit Credit(const std::string& workspace, const std::string& id) {
    AddCredit credit;
    credit.workspace = workspace;
    credit.command_id = id;
    credit.amount_nano_usd = 1'000'000;
    credit.actor = "user:ann";
    return credit;
  }

  // Number of entries in the audit log. Verifies its chain.
  int64_t AuditEntries() {
    const auto page = audit::ReadPage(*connection_, audit::kEntries, 0, 10'000);
    EXPECT_TRUE(page.ok()) << page.error().message;
    if (!page.ok()) return -1;
    audit::Verifier chain;
    for (const audit::Record& record : page->records) EXPECT_TRUE(chain.Add(record));
    EXPECT_TRUE(chain.Finish(page->head.sequence, page->head.hash));
    return page->head.sequence;
  }
  testing::TestPostgres& WorkerOf(const std::string& table) {
    const std::string name = "SELECT count(*) FROM citus_shards WHERE table_name = '" + table +
                             "'::regclass AND nodename = '";
    return server_->worker(Number(name + server_->worker(0).folder() + "'") > 0 ? 0 : 1);
  }

  static testing::TestPostgres* server_;
  std::unique_ptr<sql::Database> database_;
  std::unique_ptr<sql::Connection> connection_;
};
testing::TestPostgres* DistributeOnCitusTest::server_ = nullptr;

TEST_F(DistributeOnCitusTest, IsRefusedWithoutALedgerAndBesideTablesOfOthers) {
  EXPECT_NE(Refusal().find("there is no ledger in this database"), std::string::npos);
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  EXPECT_EQ(Refusal(), "");
  ASSERT_TRUE(connection_
                  ->ExecuteScript("INSERT INTO schema_migration (component, version, name, "
                                  "applied_us) VALUES ('auth', 1, 'keys', 1)")
                  .ok());
  EXPECT_NE(Refusal().find("also has tables of \"auth\""), std::string::npos);
}

TEST_F(DistributeOnCitusTest, TablesGoByShardWithTheirRowsAndTheLedgerGoesOn) {
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  std::vector<Operation> credits;
  for (int i = 0; i < 20; ++i) {
    credits.emplace_back(OpenWallet{"ws" + std::to_string(i)});
    credits.emplace_back(Credit("ws" + std::to_string(i), "before"));
  }
  Run(credits);
  const auto plan = PlanDistribution(*connection_);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(plan->servers, 2);
  EXPECT_EQ(plan->tables.front().name, "wallet");
  EXPECT_TRUE(plan->tables.front().by_shard);
  const auto audit = std::ranges::find(plan->tables, "audit_entry", &Distribution::Table::name);
  ASSERT_NE(audit, plan->tables.end());
  EXPECT_FALSE(audit->by_shard);
  EXPECT_FALSE(*IsDistributed(*connection_));

  const auto done = DistributeLedger(*connection_, *plan, 6);
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_TRUE(*IsDistributed(*connection_));
  EXPECT_EQ(Number("SELECT count(*) FROM citus_shards WHERE table_name = 'wallet'::regclass"), 6);
  EXPECT_EQ(Number("SELECT count(DISTINCT colocation_id) FROM citus_tables"), 2)
      << "all tables by shard together, and all others";
  EXPECT_EQ(Number("SELECT count(DISTINCT nodename) FROM citus_shards"), 2);
  EXPECT_EQ(Number("SELECT count(*) FROM ONLY wallet"), 20) << "no other rows are left";

  // A command and its audit entry are on one server.
  const std::string in_two_phases = "SELECT count(*) FROM pg_dist_transaction";
  const int64_t before = Number(in_two_phases);
  for (int i = 0; i < 20; ++i) Run({Credit("ws" + std::to_string(i), "after")});
  EXPECT_LE(Number(in_two_phases), before);
  Run(credits);  // so that they are known
  for (int i = 0; i < 20; ++i) {
    const auto balance = ReadBalance(*database_, "ws" + std::to_string(i), kNowUs);
    ASSERT_TRUE(balance.ok()) << balance.error().message;
    EXPECT_EQ(balance->paid_nano_usd, 2'000'000);
  }
  EXPECT_EQ(AuditEntries(), 40) << "entries from before the distribution";
  EXPECT_EQ(*MoveAuditEntries(*connection_), 20);
  EXPECT_EQ(AuditEntries(), 60);
  const auto report = VerifyLedger(*database_);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->ok()) << report->violations.front();
  EXPECT_EQ(report->workspaces, 20);

  // Distributes again, with a table of a later version.
  ASSERT_TRUE(connection_->ExecuteScript("CREATE TABLE later (shard BIGINT PRIMARY KEY)").ok());
  const auto rest = PlanDistribution(*connection_);
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  ASSERT_EQ(rest->tables.size(), 1U);
  EXPECT_EQ(rest->distributed_tables, static_cast<int64_t>(plan->tables.size()));
  const auto again = DistributeLedger(*connection_, *rest, 32);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(Number("SELECT count(*) FROM citus_shards WHERE table_name = 'later'::regclass"), 6);
}

// A statement on several pieces opens a connection for most of them, in each batch.
TEST_F(DistributeOnCitusTest, EveryStatementOfABatchAsksOnePiece) {
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  ASSERT_TRUE(DistributeLedger(*connection_, *PlanDistribution(*connection_), 8).ok());
  // Makes Citus refuse statements on several pieces.
  ASSERT_TRUE(connection_->ExecuteScript("SET citus.multi_task_query_log_level = 'error'").ok());
  EXPECT_FALSE(connection_->ExecuteScript("SELECT count(*) FROM wallet").ok());
  WalletChecker checker;
  const auto run = [&](const std::vector<Operation>& operations) {
    auto applied = RunBatch(*connection_, operations, kNowUs, Policy(), [&](State& state) {
      return checker.Check(*connection_, state, kNowUs);
    });
    ASSERT_TRUE(applied.ok()) << applied.error().message;
    for (const Reply& reply : applied->replies) EXPECT_TRUE(reply.ok);
  };
  run({Credit("acme", "first")});
  Authorize hold;
  hold.request_id = Id::Make(kNowUs / 1000, 0, 1);
  hold.workspace = "acme";
  hold.key_id = "key";
  hold.model = "m";
  hold.rates = {1, 1};
  hold.prompt_bound = 10;
  hold.output_bound = 10;
  run({hold});
  Settle settle;
  settle.request_id = hold.request_id;
  settle.workspace = "acme";
  settle.sequence = 1;
  settle.usage = {10, 0, 0, 10, 0};
  settle.outcome = Outcome::kCompleted;
  run({settle});
}

TEST_F(DistributeOnCitusTest, OneRunOnAnEmptyDatabaseDistributesAllThatBillingHas) {
  const std::string plan = Distribute({});
  for (const sql::Schema& schema : AllSchemas()) {
    EXPECT_NE(plan.find("migration 1 of " + std::string(schema.component)), std::string::npos)
        << plan;
  }
  EXPECT_NE(plan.find("Nothing was changed"), std::string::npos) << plan;
  EXPECT_EQ(Number("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), 0);

  const std::string done = Distribute({"--shards", "4", "--apply"});
  EXPECT_NE(done.find("The ledger is distributed"), std::string::npos) << done;
  EXPECT_EQ(Left(), 0);
  EXPECT_EQ(Number("SELECT count(*) FROM citus_shards WHERE table_name = 'payment'::regclass"), 4);
  EXPECT_NE(Distribute({}).find("There is nothing to distribute"), std::string::npos);
  EXPECT_NE(Distribute({"--apply"}).find("There is nothing to distribute"), std::string::npos);

  // Billing finds all the tables that it would create.
  const std::string made = "SELECT count(*) FROM schema_migration";
  const int64_t before = Number(made);
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  ASSERT_TRUE(payments::PaymentStore(*database_).Migrate().ok());
  ASSERT_TRUE(alerts::AlertStore(*database_).Migrate().ok());
  EXPECT_EQ(Number(made), before);
  Run({OpenWallet{"ws"}, Credit("ws", "credit")});
  const auto report = VerifyLedger(*database_);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->ok()) << report->violations.front();
}

TEST_F(DistributeOnCitusTest, TablesThatWereNotMadeYetAreDistributedWithTheOthersOrAfterThem) {
  for (const bool distributed : {false, true}) {
    connection_.reset();
    database_ = *sql::Database::Open({.url = server_->MakeDatabase("ledger")});
    connection_ = *database_->Connect();
    ASSERT_TRUE(MigrateLedger(*database_).ok());
    if (distributed) {
      ASSERT_TRUE(DistributeLedger(*connection_, *PlanDistribution(*connection_), 4).ok());
    }
    const auto plan = PlanDistribution(*connection_, AllSchemas());
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_EQ(plan->tables.empty(), distributed);
    EXPECT_EQ(std::ranges::count(plan->migrations, "billing", &Distribution::Step::component), 0);
    const std::string done = Distribute({"--shards", "4", "--apply"});
    EXPECT_NE(done.find("migration 1 of billing_alerts"), std::string::npos) << done;
    EXPECT_NE(done.find("The ledger is distributed"), std::string::npos) << done;
    EXPECT_EQ(Left(), 0);
    EXPECT_EQ(Number("SELECT count(DISTINCT colocation_id) FROM citus_tables"), 2);
  }
}

TEST_F(DistributeOnCitusTest, MigrationsAreRunBesideBillingsThatRunThem) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] {
      const auto done = ApplyMigrations(*database_, AllSchemas());
      EXPECT_TRUE(done.ok()) << done.error().message;
    });
  }
  threads.emplace_back([this] {
    EXPECT_TRUE(MigrateLedger(*database_).ok());
    EXPECT_TRUE(alerts::AlertStore(*database_).Migrate().ok());
    EXPECT_TRUE(payments::PaymentStore(*database_).Migrate().ok());
  });
  for (std::thread& thread : threads) thread.join();
  const auto plan = PlanDistribution(*connection_, AllSchemas());
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_TRUE(plan->migrations.empty());
}

TEST_F(DistributeOnCitusTest, ADatabaseOfANewerVersionOrOfAnotherServiceIsNotMigrated) {
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  const auto refusal = [this] {
    const auto plan = PlanDistribution(*connection_, AllSchemas());
    return plan.ok() ? "" : plan.error().message;
  };
  for (const auto& [component, says] :
       {std::pair("billing_alerts", "the schema of billing_alerts is newer than this version"),
        std::pair("auth", "also has tables of \"auth\"")}) {
    ASSERT_TRUE(connection_
                    ->ExecuteScript("INSERT INTO schema_migration (component, version, name, "
                                    "applied_us) VALUES ('" +
                                    std::string(component) + "', 99, 'later', 1)")
                    .ok());
    EXPECT_NE(refusal().find(says), std::string::npos) << refusal();
    ASSERT_TRUE(connection_->ExecuteScript("DELETE FROM schema_migration WHERE version = 99").ok());
  }
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(Number("SELECT count(*) FROM pg_tables WHERE tablename = 'payment'"), 0);
}

TEST_F(DistributeOnCitusTest, TransactionsInDoubtAreCounted) {
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  ASSERT_TRUE(DistributeLedger(*connection_, *PlanDistribution(*connection_), 2).ok());
  EXPECT_EQ(*CountInDoubt(*connection_, 0), 0);
  // Citus ends prepared transactions only if they have its own name.
  ASSERT_TRUE(server_->worker(0).Execute("BEGIN; PREPARE TRANSACTION 'left-behind'", "ledger"));
  EXPECT_EQ(*CountInDoubt(*connection_, 0), 1);
  EXPECT_EQ(*CountInDoubt(*connection_, 60), 0);
  EXPECT_TRUE(server_->worker(0).Execute("ROLLBACK PREPARED 'left-behind'", "ledger"));
  EXPECT_EQ(*CountInDoubt(*connection_, 0), 0);
}

// Operations on a hung worker get no answer; the check of the worker does not wait for it for long.
TEST_F(DistributeOnCitusTest, AWorkerThatStandsStillIsFoundAndOthersServeOn) {
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  ASSERT_TRUE(DistributeLedger(*connection_, *PlanDistribution(*connection_), 8).ok());
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("ws" + std::to_string(i));
  for (const std::string& name : names) Run({OpenWallet{name}});
  const auto nodes = ReadNodes(*connection_);
  ASSERT_TRUE(nodes.ok()) << nodes.error().message;
  ASSERT_EQ(nodes->of_shard.size(), static_cast<size_t>(kLedgerShards));
  const auto still = static_cast<int32_t>(
      Number("SELECT CAST(groupid AS BIGINT) FROM pg_dist_node WHERE nodename = '" +
             server_->worker(1).folder() + "'"));

  auto options = database_->options();
  options.distributed_timeout_ms = 1500;
  const auto database = *sql::Database::Open(options);
  std::set<int32_t> seen;
  server_->worker(1).FreezeAll();
  for (const std::string& name : names) {
    const int32_t node = nodes->of_shard[static_cast<size_t>(LedgerShard(name))];
    if (node == still && !seen.insert(node).second) continue;
    seen.insert(node);
    const auto fresh = *database->Connect();
    const auto answers = NodeAnswers(*fresh, node);
    ASSERT_TRUE(answers.ok()) << answers.error().message;
    EXPECT_EQ(*answers, node != still);
    const auto done = RunBatch(*fresh, std::vector<Operation>{OpenWallet{name}}, kNowUs, Policy());
    EXPECT_EQ(done.ok(), node != still) << name;
    if (!done.ok()) {
      EXPECT_TRUE(done.error().no_answer || done.error().kind == sql::ErrorKind::kNodeLost)
          << done.error().message;
    }
  }
  server_->worker(1).ThawAll();
  EXPECT_EQ(seen.size(), 2U);
  const auto fresh = *database->Connect();
  EXPECT_TRUE(*NodeAnswers(*fresh, still));
}

// A moved row loses its lock. Without KeepInPlace two batches write the same entry.
TEST_F(DistributeOnCitusTest, APieceThatMovesUnderBatchesBreaksNoLedger) {
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  ASSERT_TRUE(DistributeLedger(*connection_, *PlanDistribution(*connection_), 2).ok());
  AddCredit credit = Credit("ws", "credit");
  credit.amount_nano_usd = 1'000'000'000'000;
  Run({OpenWallet{"ws"}, credit});
  std::atomic<bool> stop = false;
  std::atomic<int64_t> settled = 0;
  std::vector<std::thread> replicas;
  for (int replica = 0; replica < 4; ++replica) {
    replicas.emplace_back([&, replica] {
      const auto connection = *database_->Connect();
      for (int i = 0; !stop; ++i) {
        const Id id = TestId(replica * 1'000'000 + i, kNowUs);
        const std::vector<Operation> batch = {MakeAuthorize(id, 100, 50), MakeSettle(id, 100, 50)};
        auto done = RunBatch(*connection, batch, kNowUs + i, Policy());
        // A moving piece is locked briefly.
        if (done.ok()) ++settled;
        EXPECT_TRUE(done.ok() || done.error().retryable()) << done.error().message;
      }
    });
  }
  for (int move = 0; move < 4; ++move) {
    const int64_t before = settled;
    while (settled < before + 20) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    MoveThePieceOf("ws");
  }
  stop = true;
  for (std::thread& replica : replicas) replica.join();
  const auto report = VerifyLedger(*database_);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->ok()) << report->violations.front();
  const auto balance = ReadBalance(*database_, "ws", kNowUs);
  ASSERT_TRUE(balance.ok());
  EXPECT_EQ(balance->held_nano_usd, 0);
  std::printf("%lld requests settled\n", static_cast<long long>(settled));
}

TEST_F(DistributeOnCitusTest, EveryAuditEntryIsMovedOnceInTheOrderOfItsWorkspace) {
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  ASSERT_TRUE(DistributeLedger(*connection_, *PlanDistribution(*connection_), 4).ok());
  std::atomic<bool> stop = false;
  std::atomic<int64_t> moved = 0;
  std::vector<std::thread> movers;
  for (int i = 0; i < 3; ++i) {
    movers.emplace_back([&] {
      const auto connection = *database_->Connect();
      while (!stop) {
        const auto done = MoveAuditEntries(*connection);
        if (done.ok()) moved += *done;
        EXPECT_TRUE(done.ok() || done.error().retryable()) << done.error().message;
      }
    });
  }
  constexpr int kCommands = 40, kWorkspaces = 5;
  for (int i = 0; i < kCommands; ++i) {
    for (int w = 0; w < kWorkspaces; ++w) {
      const std::string name = "ws" + std::to_string(w);
      if (i == 0) Run({OpenWallet{name}});
      // If batches of two replicas wait for the wallet, the later one may be dated earlier.
      Run({Credit(name, std::to_string(2 * i)), Credit(name, std::to_string(2 * i + 1))},
          kNowUs - i);
    }
  }
  stop = true;
  for (std::thread& mover : movers) mover.join();
  const auto rest = MoveAuditEntries(*connection_);
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  constexpr int64_t kAll = kWorkspaces * (2 * kCommands + 1);
  EXPECT_EQ(AuditEntries(), kAll);
  EXPECT_LE(moved + *rest, kAll) << "a counted entry is in the log";
  const auto page = audit::ReadPage(*connection_, audit::kEntries, 0, 10'000);
  std::map<std::string, int> next;
  for (const audit::Record& record : page->records) {
    if (record.action != "credit.add") continue;
    EXPECT_EQ(record.subject, std::to_string(next[record.workspace_id]++)) << record.workspace_id;
  }
}

// One of the workers has the audit log.
TEST_F(DistributeOnCitusTest, CommandsAreBookedWhileTheServerOfTheAuditLogIsLost) {
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  ASSERT_TRUE(DistributeLedger(*connection_, *PlanDistribution(*connection_), 8).ok());
  testing::TestPostgres& of_log = WorkerOf("audit_head");
  std::vector<std::string> names;
  for (int i = 0; names.size() < 5; ++i) {
    const std::string name = "ws" + std::to_string(i);
    if (Number("SELECT count(*) FROM citus_shards WHERE nodename = '" + of_log.folder() +
               "' AND shardid = get_shard_id_for_distribution_column('wallet', " +
               std::to_string(LedgerShard(name)) + "::bigint)") == 0) {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) Run({OpenWallet{name}});
  ASSERT_EQ(*MoveAuditEntries(*connection_), 5);
  of_log.Kill();
  for (const std::string& name : names) Run({Credit(name, "meanwhile")});
  EXPECT_FALSE(MoveAuditEntries(*connection_).ok());
  ASSERT_TRUE(of_log.Run());
  EXPECT_EQ(*MoveAuditEntries(*connection_), 5);
  EXPECT_EQ(AuditEntries(), 10);
}

// An ordinary table of the coordinator would not be committed together with the wallet.
TEST_F(DistributeOnCitusTest, UntilTheOutboxIsDistributedCommandsWriteToTheAuditLog) {
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  ASSERT_TRUE(connection_->ExecuteScript("ALTER TABLE audit_outbox RENAME TO later").ok());
  auto plan = *PlanDistribution(*connection_);
  std::erase_if(plan.tables, [](const auto& table) { return table.name == "later"; });
  ASSERT_TRUE(DistributeLedger(*connection_, plan, 4).ok());
  ASSERT_TRUE(connection_->ExecuteScript("ALTER TABLE later RENAME TO audit_outbox").ok());
  Run({OpenWallet{"ws"}, Credit("ws", "before")});
  EXPECT_EQ(AuditEntries(), 2);
  ASSERT_TRUE(DistributeLedger(*connection_, *PlanDistribution(*connection_), 4).ok());
  Run({Credit("ws", "after")});
  EXPECT_EQ(AuditEntries(), 2);
  EXPECT_EQ(*MoveAuditEntries(*connection_), 1);
  EXPECT_EQ(AuditEntries(), 3);
}

// Operations on a lost server's rows are refused, operations on other servers are not
// (docs/adr/0040).
TEST_F(DistributeOnCitusTest, AWorkerThatIsLostConcernsItsShardsOnly) {
  ASSERT_TRUE(MigrateLedger(*database_).ok());
  ASSERT_TRUE(DistributeLedger(*connection_, *PlanDistribution(*connection_), 8).ok());
  std::vector<Operation> wallets;
  for (int i = 0; i < 20; ++i) wallets.emplace_back(OpenWallet{"ws" + std::to_string(i)});
  Run(wallets);
  server_->worker(1).Kill();
  int served = 0, lost = 0;
  for (int i = 0; i < 20; ++i) {
    const auto balance = ReadBalance(*database_, "ws" + std::to_string(i), kNowUs);
    if (balance.ok()) {
      ++served;
    } else {
      EXPECT_EQ(balance.error().kind, sql::ErrorKind::kNodeLost) << balance.error().message;
      ++lost;
    }
  }
  EXPECT_GT(served, 0);
  EXPECT_GT(lost, 0);
  EXPECT_TRUE(connection_->healthy());
  ASSERT_TRUE(server_->worker(1).Run());
  const auto report = VerifyLedger(*database_);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->ok());
}

}  // namespace
}  // namespace tollgate::billing
