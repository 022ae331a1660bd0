// kill -9 in the middle of the work: what was acknowledged is there, the books prove, and asking
// again changes nothing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "services/billing/domain/testing/ledger_world.h"
#include "services/billing/storage/reports.h"
#include "services/billing/storage/store.h"
#include "services/billing/storage/verify.h"
#include "tests/support/postgres.h"

namespace tollgate::billing {
namespace {

constexpr int64_t kNow = 1'763'700'000'000'000;
constexpr int kPerBatch = 8;

// The work of one life: batch 2n opens eight holds, batch 2n + 1 settles them.
std::vector<Op> BatchOf(int life, int batch) {
  std::vector<Op> ops;
  for (int i = 0; i < kPerBatch; ++i) {
    const Id id = TestId(life * 10'000'000 + batch / 2 * kPerBatch + i, kNow);
    ops.push_back(batch % 2 == 0 ? AuthorizeOp(id, 100, 50) : SettleOp(id, 100, i));
  }
  return ops;
}

std::unique_ptr<sql::Connection> Connect(const std::string& url) {
  sql::Database::Options options;
  options.url = url;
  auto connection = (*sql::Database::Open(options))->Connect();
  return connection.ok() ? std::move(*connection) : nullptr;
}

// Works until it is killed; says each batch that is durable.
[[noreturn]] void Work(const std::string& url, int life, int out) {
  auto connection = Connect(url);
  if (!connection) _exit(1);
  for (int batch = 0;; ++batch) {
    const std::vector<Op> ops = BatchOf(life, batch);
    auto applied = RunBatch(*connection, ops, kNow, Policy());
    if (!applied.ok()) _exit(1);
    if (write(out, &batch, sizeof batch) != sizeof batch) _exit(1);
  }
}

class CrashTest : public ::testing::TestWithParam<sql::Dialect> {
 protected:
  void SetUp() override {
    if (GetParam() == sql::Dialect::kSqlite) {
      file_ = (std::filesystem::temp_directory_path() /
               ("tollgate-crash-" + std::to_string(getpid()) + ".db"))
                  .string();
      Remove();
      url_ = "sqlite:" + file_;
    } else {
      server_ = testing::TestPostgres::Start();
      if (!server_) {
        ASSERT_FALSE(testing::TestPostgres::Required());
        GTEST_SKIP() << "PostgreSQL is not installed";
      }
      url_ = server_->Url("postgres");
    }
    sql::Database::Options options;
    options.url = url_;
    database_ = std::move(*sql::Database::Open(options));
    ASSERT_TRUE(MigrateLedger(*database_).ok());
    const std::vector<Op> credit = {CreditOp("c", 1'000'000'000'000)};
    ASSERT_TRUE(RunBatch(*Connect(url_), credit, kNow, Policy()).ok());
  }
  void TearDown() override {
    if (!file_.empty()) Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }

  // Lets a child work for a while, ends it (or its database) with -9; the last batch it had
  // acknowledged.
  int LifeAndDeath(int life, int64_t work_us, bool kill_database) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      Work(url_, life, ends[1]);
    }
    close(ends[1]);
    int last = -1;
    // Its time counts from its first sign of life.
    int batch = 0;
    bool reading = read(ends[0], &batch, sizeof batch) == sizeof batch;
    if (reading) last = batch;
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(work_us));
      if (kill_database) {
        server_->Kill();
      } else {
        kill(child, SIGKILL);
      }
    });
    while (reading && read(ends[0], &batch, sizeof batch) == sizeof batch) last = batch;
    killer.join();
    close(ends[0]);
    waitpid(child, nullptr, 0);
    if (kill_database) EXPECT_TRUE(server_->Run());
    return last;
  }

  void ExpectKept(int life, int last) {
    auto connection = Connect(url_);
    ASSERT_NE(connection, nullptr);
    for (int batch = 1; batch <= last; batch += 2) {
      auto again = RunBatch(*connection, BatchOf(life, batch), kNow, Policy());
      ASSERT_TRUE(again.ok()) << again.error().message;
      ASSERT_TRUE(again->entries.empty()) << "batch " << batch << " was acknowledged and lost";
      for (int i = 0; i < kPerBatch; ++i) {
        ASSERT_TRUE(again->replies[i].ok);
        ASSERT_EQ(again->replies[i].charged, 100 + 2 * i);
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

TEST_P(CrashTest, NothingThatWasAcknowledgedIsLost) {
  std::mt19937_64 random(99);
  const bool postgres = GetParam() == sql::Dialect::kPostgres;
  const char* rounds = std::getenv("TOLLGATE_CRASHES");
  const int lives = rounds ? std::atoi(rounds) : 8;
  int total = 0;
  for (int life = 1; life <= lives; ++life) {
    const int64_t work_us = 1000 + static_cast<int64_t>(random() % 80'000);
    const int last = LifeAndDeath(life, work_us, postgres && life % 4 == 0);
    ASSERT_GE(last, 0) << "the child did not work";
    ExpectKept(life, last);
    if (HasFatalFailure()) return;
    total += last + 1;
  }
  std::printf("%d lives, %d acknowledged batches\n", lives, total);
}

INSTANTIATE_TEST_SUITE_P(Both, CrashTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         [](const auto& info) {
                           return info.param == sql::Dialect::kSqlite ? "sqlite" : "postgres";
                         });

}  // namespace
}  // namespace tollgate::billing
