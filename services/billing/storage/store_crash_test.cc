// Kills the process or its database with SIGKILL: acknowledged batches are kept, the ledger
// verifies, and repeating the batches changes nothing. TOLLGATE_CRASHES sets the number of rounds.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "services/billing/domain/testing/ledger_world.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/store.h"
#include "services/billing/storage/testing/ledger_schema.h"
#include "services/billing/verify/verify.h"
#include "tests/support/postgres.h"

namespace tollgate::billing {
namespace {

constexpr int64_t kNowUs = 1'763'700'000'000'000;
constexpr int kPerBatch = 8;

// Batches of one round: batch 2n opens eight holds, batch 2n + 1 settles them.
std::vector<Operation> BatchOf(int round, int batch) {
  std::vector<Operation> operations;
  for (int i = 0; i < kPerBatch; ++i) {
    const Id id = TestId(round * 10'000'000 + batch / 2 * kPerBatch + i, kNowUs);
    if (batch % 2 == 0) {
      operations.push_back(MakeAuthorize(id, 100, 50));
    } else {
      operations.push_back(MakeSettle(id, 100, i));
    }
  }
  return operations;
}

std::unique_ptr<sql::Connection> Connect(const std::string& url) {
  sql::Database::Options options;
  options.url = url;
  auto connection = (*sql::Database::Open(options))->Connect();
  return connection.ok() ? std::move(*connection) : nullptr;
}

// Runs batches until it is killed; writes the number of each durable batch to out.
[[noreturn]] void RunBatches(const std::string& url, int round, int out) {
  auto connection = Connect(url);
  if (!connection) _exit(1);
  for (int batch = 0;; ++batch) {
    const std::vector<Operation> operations = BatchOf(round, batch);
    auto applied = RunBatch(*connection, operations, kNowUs, Policy());
    if (!applied.ok()) _exit(1);
    if (write(out, &batch, sizeof batch) != sizeof batch) _exit(1);
  }
}

class StoreCrashTest : public ::testing::TestWithParam<sql::Dialect> {
 protected:
  void SetUp() override {
    if (GetParam() == sql::Dialect::kSqlite) {
      file_ = (std::filesystem::temp_directory_path() /
               ("tollgate-crash-" + std::to_string(getpid()) + ".db"))
                  .string();
      Remove();
      url_ = "sqlite:" + file_;
    } else {
      server_ = testing::TestPostgres::StartStore();
      if (!server_) {
        ASSERT_FALSE(testing::TestPostgres::Required());
        GTEST_SKIP() << "PostgreSQL is not installed";
      }
      url_ = server_->MakeDatabase("crash");
    }
    sql::Database::Options options;
    options.url = url_;
    database_ = std::move(*sql::Database::Open(options));
    ASSERT_TRUE(MigrateLedger(*database_).ok());
    DistributeForTests(*database_);
    const std::vector<Operation> credit = {MakeAddCredit("c", 1'000'000'000'000)};
    ASSERT_TRUE(RunBatch(*Connect(url_), credit, kNowUs, Policy()).ok());
  }
  void TearDown() override {
    if (!file_.empty()) Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }

  // Runs batches in a child process for this long, then kills it or its database. Returns the last
  // acknowledged batch.
  int RunAndKill(int round, int64_t work_us, testing::TestPostgres* kill_database) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      RunBatches(url_, round, ends[1]);
    }
    close(ends[1]);
    int last = -1;
    // The time starts with the first acknowledged batch.
    int batch = 0;
    bool reading = read(ends[0], &batch, sizeof batch) == sizeof batch;
    if (reading) last = batch;
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(work_us));
      if (kill_database != nullptr) {
        kill_database->Kill();
        // If the killed worker does not have the workspace, the batches continue.
        if (kill_database != server_.get()) kill(child, SIGKILL);
      } else {
        kill(child, SIGKILL);
      }
    });
    while (reading && read(ends[0], &batch, sizeof batch) == sizeof batch) last = batch;
    killer.join();
    close(ends[0]);
    waitpid(child, nullptr, 0);
    if (kill_database != nullptr) EXPECT_TRUE(kill_database->Run());
    return last;
  }

  void ExpectKept(int round, int last) {
    auto connection = Connect(url_);
    ASSERT_NE(connection, nullptr);
    for (int batch = 1; batch <= last; batch += 2) {
      auto again = RunBatch(*connection, BatchOf(round, batch), kNowUs, Policy());
      ASSERT_TRUE(again.ok()) << again.error().message;
      ASSERT_TRUE(again->entries.empty()) << "batch " << batch << " was acknowledged and lost";
      for (int i = 0; i < kPerBatch; ++i) {
        ASSERT_TRUE(again->replies[i].ok);
        ASSERT_EQ(again->replies[i].charged_nano_usd, 100 + 2 * i);
      }
    }
    auto report = VerifyLedger(*database_);
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_TRUE(report->ok()) << report->violations.front();
  }

  std::string file_;
  std::string url_;
  std::unique_ptr<testing::TestPostgres> server_;
  std::unique_ptr<sql::Database> database_;
};

TEST_P(StoreCrashTest, NoAcknowledgedBatchIsLost) {
  std::mt19937_64 random(99);
  const bool postgres = GetParam() == sql::Dialect::kPostgres;
  const char* given = std::getenv("TOLLGATE_CRASHES");
  const int rounds = given ? std::atoi(given) : 8;
  int total = 0;
  for (int round = 1; round <= rounds; ++round) {
    const int64_t work_us = 1000 + static_cast<int64_t>(random() % 80'000);
    testing::TestPostgres* kill_database = postgres && round % 4 == 0 ? server_.get() : nullptr;
    // On Citus: kills the coordinator and each worker in turn.
    const int killed = round / 4 % (kill_database == nullptr ? 1 : server_->workers() + 1);
    if (killed > 0) kill_database = &server_->worker(killed - 1);
    const int last = RunAndKill(round, work_us, kill_database);
    ASSERT_GE(last, 0) << "the child acknowledged no batch";
    ExpectKept(round, last);
    if (HasFatalFailure()) return;
    total += last + 1;
  }
  std::printf("%d rounds, %d acknowledged batches\n", rounds, total);
}

INSTANTIATE_TEST_SUITE_P(Both, StoreCrashTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         [](const auto& info) {
                           return info.param == sql::Dialect::kSqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace tollgate::billing
