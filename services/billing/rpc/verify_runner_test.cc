#include "services/billing/rpc/verify_runner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "services/billing/domain/testing/ledger_world.h"
#include "services/billing/reports/reports.h"

namespace tollgate::billing {
namespace {

class VerifyRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = (std::filesystem::temp_directory_path() /
             ("tollgate-runner-" + std::to_string(getpid()) + ".db"))
                .string();
    Remove();
    LedgerService::Options options;
    options.group_commit.call_timeout_ms = 60'000;  // the machine may be busy
    options.sql.url = "sqlite:" + file_;
    ledger_ = std::make_unique<LedgerService>(options, SystemClock::Get());
    ASSERT_TRUE(ledger_->Start().ok());
    std::promise<void> added;
    ledger_->Submit({MakeAddCredit("c", 1000)}, [&](auto) { added.set_value(); });
    added.get_future().wait();
  }
  void TearDown() override {
    ledger_->Stop();
    ledger_.reset();
    Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }
  std::string file_;
  std::unique_ptr<LedgerService> ledger_;
};

// A verification occupies no thread that serves reads, runs alone, and ends when its caller leaves.
TEST_F(VerifyRunnerTest, RunsBesideTheReadersAndOnce) {
  VerifyRunner runner(*ledger_);
  std::promise<void> begun;
  std::promise<bool> left;
  auto leave = left.get_future().share();  // whether to continue
  std::promise<Result<VerifyReport>> first;
  bool asked = false;
  ASSERT_TRUE(runner.Start(
      "",
      [&](const VerifyReport&) {
        if (!std::exchange(asked, true)) begun.set_value();
        return leave.get();
      },
      [&](Result<VerifyReport> report) { first.set_value(std::move(report)); }));
  begun.get_future().wait();
  EXPECT_FALSE(runner.Start("", [](const VerifyReport&) { return true; }, [](auto) { FAIL(); }));
  // More reads than there are reader threads.
  for (int i = 0; i < 16; ++i) {
    std::promise<bool> read;
    ledger_->Read(
        [&](sql::Database& database) { read.set_value(ReadBalance(database, "ws", 0).ok()); },
        [&](Error) { read.set_value(false); });
    EXPECT_TRUE(read.get_future().get());
  }
  left.set_value(false);
  const auto stopped = first.get_future().get();
  ASSERT_TRUE(stopped.ok());
  EXPECT_TRUE(stopped->stopped);
  EXPECT_FALSE(stopped->ok());

  std::promise<Result<VerifyReport>> second;
  ASSERT_TRUE(runner.Start(
      "", [](const VerifyReport&) { return true; },
      [&](auto report) { second.set_value(std::move(report)); }));
  const auto done = second.get_future().get();
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(done->ok());
  EXPECT_EQ(done->workspaces, 1);
}

TEST_F(VerifyRunnerTest, WhatItFindsIsAMetricUntilEverythingVerifies) {
  VerifyRunner runner(*ledger_);
  const auto run = [&](const std::string& workspace, int64_t more_paid) {
    auto database = std::move(*sql::Database::Open({.url = "sqlite:" + file_}));
    auto changed = database->Transact(sql::TxMode::kWrite, [&](sql::Connection& db) {
      return db.ExecuteScript("UPDATE wallet SET paid = paid + " + std::to_string(more_paid));
    });
    EXPECT_TRUE(changed.ok());
    std::promise<void> done;
    EXPECT_TRUE(runner.Start(
        workspace, [](const VerifyReport&) { return true; }, [&](auto) { done.set_value(); }));
    done.get_future().wait();
    return metrics::Gauge("tollgate_billing_verify_violations", "").Value();
  };
  EXPECT_EQ(run("ws", 1), 1);
  EXPECT_EQ(run("ws", -1), 1) << "entries of one workspace only";
  EXPECT_EQ(run("", 0), 0);
}

}  // namespace
}  // namespace tollgate::billing
