// A running ledger on Citus (docs/adr/0040), where it is installed.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "common/base/ledger_shard.h"
#include "services/billing/commit/ledger_service.h"
#include "services/billing/commit/testing/ledger_service_world.h"
#include "services/billing/storage/distribute.h"

namespace tollgate::billing {
namespace {

TEST(LedgerServiceOnCitusTest, AWorkerThatStandsStillConcernsItsShardsOnly) {
  const auto server = testing::TestPostgres::StartCitus(2);
  if (!server) GTEST_SKIP() << "Citus is not installed";
  LedgerService::Options options;
  options.sql.url = server->MakeDatabase("stands_still");
  options.expiry_interval_ms = 20;
  const auto database = *sql::Database::Open({.url = options.sql.url});
  const auto connection = *database->Connect();
  ASSERT_TRUE(MigrateLedger(*database).ok());
  ASSERT_TRUE(DistributeLedger(*connection, *PlanDistribution(*connection), 4).ok());
  const auto node_of = [&](const std::string& workspace) {
    std::string node;
    auto read = connection->Query(
        "SELECT nodename FROM citus_shards WHERE shardid ="
        " get_shard_id_for_distribution_column('wallet', " +
            std::to_string(LedgerShard(workspace)) + "::bigint)",
        {}, [&](const sql::Row& row) { node = row.Text(0); });
    EXPECT_TRUE(read.ok()) << read.error().message;
    return node;
  };
  std::string lost, other;
  for (int i = 0; lost.empty() || other.empty(); ++i) {
    const std::string name = "ws" + std::to_string(i);
    (node_of(name) == server->worker(0).folder() ? lost : other) = name;
  }
  const auto credit = [](const std::string& workspace, int number) {
    AddCredit add = MakeAddCredit("c" + std::to_string(number), 1'000'000);
    add.workspace = workspace;
    return add;
  };

  LedgerService ledger(options, SystemClock::Get());
  ASSERT_TRUE(ledger.Start().ok());
  ASSERT_TRUE(Eventually([&] { return ledger.Ready(); }));
  ASSERT_TRUE((*Do(ledger, {OpenWallet{lost}, credit(lost, 0)}))[1].ok);
  ASSERT_TRUE((*Do(ledger, {OpenWallet{other}, credit(other, 0)}))[1].ok);
  server->worker(0).FreezeAll();
  ledger.Submit({credit(lost, 1)}, [](auto) {});
  // Longer than a step of the maintenance may take, and than a connection is waited for.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(6);
  for (int i = 1; std::chrono::steady_clock::now() < end; ++i) {
    ASSERT_TRUE(ledger.Ready());
    // No command: its audit entry may be on the worker that stands still.
    const auto reply = Do(ledger, {MakeAuthorize(TestId(i, ledger.NowUs()), 1, 1, other)});
    ASSERT_TRUE(reply.ok()) << reply.error().ToString();
    ASSERT_TRUE((*reply)[0].ok);
  }
  server->worker(0).ThawAll();
  EXPECT_TRUE(Eventually([&] {
    const auto reply = Do(ledger, {credit(lost, 1)});
    return reply.ok() && (*reply)[0].ok;
  }));
}

}  // namespace
}  // namespace tollgate::billing
