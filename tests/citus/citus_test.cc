// A ledger on Citus, under load: it is distributed while it serves, workers and the coordinator are
// killed or stopped and come back, pieces move between servers and new ones join. Only
// workspaces of a lost worker are refused, until a second after it is back; nothing is lost or
// booked twice. See docs/operations/citus.md.
//
// TOLLGATE_CITUS_FAULTS sets how many rounds of faults there are. When it is not set, a part of one
// round runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/ledger_shard.h"
#include "common/sql/sql.h"
#include "tests/chaos/comparison.h"
#include "tests/chaos/distribute.h"
#include "tests/chaos/load.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/postgres.h"

namespace tollgate::test {
namespace {

using testing::TestPostgres;

constexpr int kHoldTtlSeconds = 6;
// Longer than admissions wait for the ledger.
constexpr int64_t kAwayMs = 5'000;
constexpr int64_t kStillMs = 10'000;
// Bound on the time until a lost worker's workspaces are served again, once it is back.
constexpr int64_t kAfterwardsUs = 1'000'000;

struct Fault {
  std::string name;
  int64_t from_us = 0;  // monotonic
  int64_t to_us = 0;    // the servers are back
  // Workspaces whose calls may be refused meanwhile.
  std::set<std::string> workspaces;
};

class CitusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!TestPostgres::CitusInstalled()) GTEST_SKIP() << "Citus is not installed";
    ASSERT_TRUE(engine_.Start());
    coordinator_ = TestPostgres::StartCitus(2);
    ASSERT_TRUE(coordinator_);
    ClusterOptions options;
    options.all_in_one = false;
    options.billings = 2;
    options.catalog = DefaultCatalog({engine_.base_url()}, Load::kInputPrice, Load::kOutputPrice);
    options.hold_ttl_seconds = kHoldTtlSeconds;
    options.billing_sql = url_ = coordinator_->MakeDatabase("billing");
    ASSERT_NE(url_, "");
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }

  std::string Distribute(const std::string& arguments) { return DistributeLedger(url_, arguments); }
  // The first column of the first row, as text.
  std::string Ask(const std::string& text) {
    auto database = sql::Database::Open({.url = url_, .statement_timeout_ms = 60'000});
    std::string answer;
    auto connection = (*database)->Connect();
    EXPECT_TRUE(connection.ok());
    if (!connection.ok()) return answer;
    auto read = (*connection)->Query(text, {}, [&](const sql::Row& row) { answer = row.Text(0); });
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
    return answer;
  }
  std::string PieceOf(const std::string& workspace) {
    return Ask("SELECT get_shard_id_for_distribution_column('wallet', " +
               std::to_string(LedgerShard(workspace)) + "::bigint)::text");
  }
  std::string NodeOf(const std::string& workspace) {
    return Ask("SELECT nodename FROM citus_shards WHERE shardid = " + PieceOf(workspace));
  }
  std::set<std::string> WorkspacesOn(const Load& load, const std::string& node) {
    std::set<std::string> found;
    for (const ApiKey& key : load.customers()) {
      if (NodeOf(key.workspace_id) == node) found.insert(key.workspace_id);
    }
    return found;
  }
  // Runs a fault and waits until calls are answered again.
  void During(Load& load, Fault fault, const std::function<void()>& change) {
    fault.from_us = MonotonicUs();
    change();
    fault.to_us = MonotonicUs();
    const int64_t whole = load.complete();
    EXPECT_TRUE(WaitUntil([&] { return load.complete() >= whole + 40; }, 60'000, 20)) << fault.name;
    faults_.push_back(std::move(fault));
  }
  void LoseAndRestart(TestPostgres& server) {
    server.Kill();
    SleepMs(kAwayMs);
    EXPECT_TRUE(server.Run());
  }

  // Connections to it stay open or are accepted, and nothing is answered.
  void StandStill(TestPostgres& server) {
    server.FreezeAll();
    SleepMs(kStillMs);
    server.ThawAll();
  }
  bool HasAuditLog(const TestPostgres& server) {
    return Ask("SELECT nodename FROM citus_shards WHERE table_name = 'audit_head'::regclass") ==
           server.folder();
  }

  const int64_t asked_ = FromEnvironment("TOLLGATE_CITUS_FAULTS", 0);
  const int64_t rounds_ = std::max<int64_t>(asked_, 1);
  EngineSim engine_;
  std::unique_ptr<TestPostgres> coordinator_;
  std::string url_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<Fault> faults_;
};

TEST_F(CitusTest, OnlyWorkspacesOfALostWorkerAreRefusedAndNothingIsLost) {
  Load load(*cluster_, "citus");
  load.Start();
  ASSERT_TRUE(WaitUntil([&] { return load.complete() >= 40; }, 60'000, 20));
  std::set<std::string> all;
  for (const ApiKey& key : load.customers()) all.insert(key.workspace_id);

  const std::string plan = Distribute("--shards 8");
  EXPECT_NE(plan.find("wallet"), std::string::npos) << plan;
  EXPECT_NE(plan.find("by shard into 8 pieces"), std::string::npos) << plan;
  EXPECT_NE(plan.find("Nothing was changed"), std::string::npos) << plan;
  During(load, {.name = "distributed while it serves", .workspaces = all}, [&] {
    const std::string done = Distribute("--shards 8 --apply");
    EXPECT_NE(done.find("The ledger is distributed"), std::string::npos) << done;
  });
  EXPECT_NE(Distribute("").find("There is nothing to distribute"), std::string::npos);

  for (int64_t round = 0; round < rounds_ && !HasFailure(); ++round) {
    for (int i = 0; i < (asked_ > 0 ? 2 : 1); ++i) {
      TestPostgres& worker = coordinator_->worker(i);
      During(load, {.name = "worker lost", .workspaces = WorkspacesOn(load, worker.folder())},
             [&] { LoseAndRestart(worker); });
    }
    for (int i = 0; i < (asked_ > 0 ? 2 : 1); ++i) {
      TestPostgres& worker = coordinator_->worker(i);
      During(load,
             {.name = HasAuditLog(worker) ? "worker with the audit log hangs" : "worker hangs",
              .workspaces = WorkspacesOn(load, worker.folder())},
             [&] { StandStill(worker); });
    }
    During(load, {.name = "coordinator lost", .workspaces = all},
           [&] { LoseAndRestart(*coordinator_); });
    const std::string hot = load.customers().front().workspace_id;
    const std::string from = NodeOf(hot);
    const std::string to = coordinator_->worker(0).folder() == from
                               ? coordinator_->worker(1).folder()
                               : coordinator_->worker(0).folder();
    const std::string shard = std::to_string(LedgerShard(hot));
    During(load, {.name = "piece of a hot workspace moved"}, [&] {
      Ask("SELECT citus_move_shard_placement(get_shard_id_for_distribution_column('wallet', " +
          shard + "::bigint), '" + from + "', 5432, '" + to + "', 5432, 'force_logical')::text");
    });
    EXPECT_EQ(NodeOf(hot), to);
    if (asked_ == 0 || round > 0) continue;
    // The piece is locked while it is copied, on a busy machine for longer than admissions wait.
    std::set<std::string> beside;
    for (const std::string& one : all) {
      if (PieceOf(one) == PieceOf(hot)) beside.insert(one);
    }
    During(load, {.name = "hot workspace isolated", .workspaces = beside}, [&] {
      Ask("SELECT isolate_tenant_to_new_shard('wallet', " + shard +
          "::bigint, 'CASCADE', shard_transfer_mode => 'block_writes')::text");
    });
    During(load, {.name = "worker added, pieces rebalanced"}, [&] {
      const TestPostgres* added = coordinator_->AddWorker("billing");
      ASSERT_TRUE(added);
      Ask("SELECT rebalance_table_shards('wallet', shard_transfer_mode => 'force_logical')::text");
      EXPECT_NE(
          Ask("SELECT count(*)::text FROM citus_shards WHERE nodename = '" + added->folder() + "'"),
          "0");
    });
  }
  load.Stop();
  const Figures figures = CompareWithLedger(*cluster_, engine_, load, kHoldTtlSeconds);
  CompareWithAuditLog(url_);
  EXPECT_EQ(cluster_->OpenDeadLetters(), 0);
  EXPECT_TRUE(WaitUntil(
      [&] {
        return Ask("SELECT sum(result::int)::text FROM run_command_on_workers($$SELECT count(*) "
                   "FROM"
                   " pg_prepared_xacts$$)") == "0";
      },
      90'000, 500))
      << "transactions are left in doubt";

  std::vector<int64_t> refused(faults_.size()), others(faults_.size()), last(faults_.size());
  for (const Call& call : load.calls()) {
    if (call.complete) continue;
    const auto fault = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& one) {
      return call.ended_us >= one.from_us && call.begun_us <= one.to_us + kAfterwardsUs;
    });
    ASSERT_NE(fault, faults_.end()) << call.tag << " failed outside of every fault: " << call.error;
    EXPECT_TRUE(fault->workspaces.contains(call.workspace))
        << fault->name << ": " << call.tag << " of " << call.workspace << " was refused with "
        << call.status << " " << call.error << ", begun " << (call.begun_us - fault->from_us) / 1000
        << " ms and ended " << (call.ended_us - fault->from_us) / 1000 << " ms after its begin";
    const auto at = static_cast<size_t>(fault - faults_.begin());
    ++refused[at];
    others[at] += fault->workspaces.contains(call.workspace) ? 0 : 1;
    last[at] = std::max(last[at], call.begun_us - fault->to_us);
  }
  for (size_t i = 0; i < faults_.size(); ++i) {
    std::printf("CITUS | %s | %.1f | %zu | %lld | %lld | %.1f |\n", faults_[i].name.c_str(),
                static_cast<double>(faults_[i].to_us - faults_[i].from_us) / 1e6,
                faults_[i].workspaces.size(), static_cast<long long>(refused[i]),
                static_cast<long long>(others[i]),
                refused[i] == 0 ? 0.0 : static_cast<double>(last[i]) / 1e6);
  }
  std::printf(
      "CITUS_LEDGER %lld complete, %lld refused, %lld cut, %lld top-ups, %lld holds expired, "
      "%lld entries verified\n",
      static_cast<long long>(figures.complete), static_cast<long long>(figures.refused),
      static_cast<long long>(figures.cut), static_cast<long long>(figures.top_ups),
      static_cast<long long>(figures.expired), static_cast<long long>(figures.entries));
}

}  // namespace
}  // namespace tollgate::test
