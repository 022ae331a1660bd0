// No acknowledged settlement, credit or cap is lost in a power cut, and the chain verifies
// (docs/adr/0005).
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <random>
#include <thread>

#include "common/base/utc_text.h"
#include "common/sql/testing/power_cut_vfs.h"
#include "services/billing/commit/ledger_service.h"
#include "services/billing/domain/testing/ledger_world.h"
#include "services/billing/reports/reports.h"
#include "services/billing/verify/verify.h"

namespace tollgate::billing {
namespace {

using sql::testing::PowerCutVfs;

constexpr int kCutsOfALedger = 25;
constexpr int kThreads = 3;

int64_t FromEnvironment(const char* name, int64_t fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::atoll(value) : fallback;
}

Result<std::vector<Reply>> Do(LedgerService& ledger, Operation operation,
                              const std::function<void(const Reply&)>& on_reply = {}) {
  std::promise<Result<std::vector<Reply>>> promise;
  ledger.Submit({std::move(operation)}, [&](Result<std::vector<Reply>> replies) {
    // The caller knew of everything recorded here before the cut.
    if (replies.ok() && on_reply) {
      PowerCutVfs::Get().UnlessCut([&] { on_reply(replies->front()); });
    }
    promise.set_value(std::move(replies));
  });
  return promise.get_future().get();
}

template <typename T>
T Read(LedgerService& ledger, std::function<sql::SqlResult<T>(sql::Database&)> read) {
  std::promise<T> promise;
  ledger.Read(
      [&](sql::Database& database) {
        auto result = read(database);
        EXPECT_TRUE(result.ok()) << result.error().message;
        promise.set_value(result.ok() ? std::move(*result) : T());
      },
      [&](Error) {
        ADD_FAILURE() << "the ledger refuses reads";
        promise.set_value(T());
      });
  return promise.get_future().get();
}

// What clients were told. Guarded by the file system's lock.
struct Known {
  std::map<std::string, int64_t> credits;  // command id to amount
  std::map<std::string, int64_t> settles;  // request id to charge
  std::map<std::string, int64_t> holds;    // request id to authorized amount
  int64_t cap = 0;                         // of ws-0, the last one
};

class PowerCutTest : public ::testing::TestWithParam<bool> {
 protected:
  PowerCutTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "powercutXXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    random_.seed(static_cast<uint64_t>(FromEnvironment("TOLLGATE_POWER_CUT_SEED", 1)));
  }
  ~PowerCutTest() override {
    PowerCutVfs::Get().Reset();
    std::filesystem::remove_all(root_);
  }

  int64_t Random(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random_);
  }
  LedgerService::Options Options(const std::string& folder) const {
    LedgerService::Options options;
    options.sql.url = "sqlite:" + folder + "/billing.db";
    options.sql.deferred_sync = GetParam();
    // Every other ledger checkpoints its log all the time.
    if (cuts_ / kCutsOfALedger % 2 == 1) options.sql.checkpoint_pages = 40;
    return options;
  }

  void Work(LedgerService& ledger, int thread, Known& known, int64_t& commands);
  void CheckKnown(LedgerService& ledger, const Known& known);
  // Restores the folder of the ledger after the cut.
  std::string Restore(const PowerCutVfs::Image& image);

  // Prints the results; a full proof also adds them to the page of TOLLGATE_POWER_CUT_RECORD.
  void Report(int64_t wanted) const;

  std::string root_;
  std::mt19937_64 random_;
  int folders_ = 0;
  int64_t cuts_ = 0, cuts_at_start_ = 0, checked_ = 0;
};

std::string Workspace(int thread) { return "ws-" + std::to_string(thread); }

// Runs until the power is cut.
void PowerCutTest::Work(LedgerService& ledger, int thread, Known& known, int64_t& commands) {
  const std::string workspace = Workspace(thread);
  std::minstd_rand random(static_cast<unsigned>(commands) * 7919u + static_cast<unsigned>(thread));
  while (!PowerCutVfs::Get().cut()) {
    ++commands;
    const std::string command = std::to_string(thread) + "-" + std::to_string(commands);
    if (commands % 4 == 1) {
      AddCredit credit = MakeAddCredit("credit-" + command, 1'000'000 + commands);
      credit.workspace = workspace;
      const int64_t amount = credit.amount_nano_usd;
      (void)Do(ledger, credit, [&](const Reply& reply) {
        if (reply.ok) known.credits[workspace + "/credit-" + command] = amount;
      });
    }
    if (thread == 0 && commands % 5 == 0) {
      SetCap cap = MakeSetCap("cap-" + command, 1'000'000'000 + commands);
      cap.workspace = workspace;
      const int64_t amount = *cap.cap_nano_usd;
      (void)Do(ledger, cap, [&](const Reply& reply) {
        if (reply.ok) known.cap = std::max(known.cap, amount);
      });
    }
    const Id id = Id::New();
    const auto held = Do(ledger, MakeAuthorize(id, 100, 50, workspace), [&](const Reply& reply) {
      if (reply.ok) known.holds[id.ToBytes()] = reply.authorized_nano_usd;
    });
    if (!held.ok() || !held->front().ok) continue;
    const int64_t completion = static_cast<int64_t>(random() % 50);
    if (random() % 2 == 0) {
      Heartbeat heartbeat = MakeHeartbeat(id, 1, 100, completion / 2);
      heartbeat.workspace = workspace;
      (void)Do(ledger, heartbeat);
    }
    (void)Do(ledger, MakeSettle(id, 100, completion, Outcome::kCompleted, workspace),
             [&](const Reply& reply) {
               if (reply.ok) known.settles[id.ToBytes()] = 100 + 2 * completion;
             });
  }
}

void PowerCutTest::CheckKnown(LedgerService& ledger, const Known& known) {
  std::map<std::string, int64_t> credits, charges, closed, holds;
  for (int thread = 0; thread < kThreads; ++thread) {
    const std::string workspace = Workspace(thread);
    const auto entries = Read<std::vector<Entry>>(ledger, [&](sql::Database& database) {
      return ReadEntries(database, workspace, 1'000'000, 0);
    });
    for (const Entry& entry : entries) {
      if (entry.kind == EntryKind::kTopup) {
        credits[workspace + "/" + entry.request] += entry.amount_nano_usd;
      }
      if (entry.kind == EntryKind::kSettle) ++closed[entry.request];
      if (entry.kind == EntryKind::kHold) holds[entry.request] = entry.amount_nano_usd;
      if (entry.kind == EntryKind::kCharge || entry.kind == EntryKind::kOverrun) {
        charges[entry.request] += entry.amount_nano_usd;
      }
    }
  }
  for (const auto& [command, amount] : known.credits) {
    EXPECT_EQ(credits[command], amount) << "credit " << command << " after cut " << cuts_;
  }
  for (const auto& [id, charge] : known.settles) {
    EXPECT_EQ(closed[id], 1) << "a settlement after cut " << cuts_;
    EXPECT_EQ(charges[id], charge);
  }
  // When holds are granted before they are on disk, a power cut may lose a hold: its request ran on
  // this machine.
  if (!GetParam()) {
    for (const auto& [id, authorized] : known.holds) EXPECT_EQ(holds[id], authorized);
  }
  const Balance balance = Read<Balance>(ledger, [&](sql::Database& database) {
    return ReadBalance(database, Workspace(0), SystemClock::Get().WallUs());
  });
  EXPECT_GE(balance.cap_nano_usd.value_or(0), known.cap);
  const auto report =
      Read<VerifyReport>(ledger, [](sql::Database& database) { return VerifyLedger(database); });
  EXPECT_TRUE(report.ok()) << report.violations.front() << " after cut " << cuts_;
  checked_ += static_cast<int64_t>(known.credits.size() + known.settles.size());
}

std::string PowerCutTest::Restore(const PowerCutVfs::Image& image) {
  const std::string folder = root_ + "/" + std::to_string(++folders_);
  std::filesystem::create_directory(folder);
  for (const auto& [path, content] : image) {
    std::ofstream(folder + "/" + std::filesystem::path(path).filename().string(), std::ios::binary)
        << content;
  }
  return folder;
}

void PowerCutTest::Report(int64_t wanted) const {
  const std::string figures = std::to_string(cuts_) + " | " + std::to_string(cuts_at_start_) +
                              " | " + std::to_string(checked_) + " |";
  std::printf("cuts, of them during a start, acknowledgements checked: %s\n", figures.c_str());
  const char* page = std::getenv("TOLLGATE_POWER_CUT_RECORD");
  if (page == nullptr || HasFailure() || cuts_ < wanted) return;
  std::ofstream file(page, std::ios::app);
  if (!GetParam()) {
    file << "\n### power-cuts, " << UtcText(SystemClock::Get().WallUs()).substr(0, 10) << ", seed "
         << FromEnvironment("TOLLGATE_POWER_CUT_SEED", 1)
         << "\n\n| ledger | power cuts | of them during a start | acknowledged settlements "
            "and credits looked up afterwards, none lost |\n|---|---|---|---|\n";
  }
  file << "| " << (GetParam() ? "holds before the disk" : "every commit flushed") << " | "
       << figures << "\n";
}

TEST_P(PowerCutTest, NothingAcknowledgedIsLost) {
  PowerCutVfs& disk = PowerCutVfs::Get();
  const int64_t wanted = FromEnvironment("TOLLGATE_POWER_CUTS", 50);
  std::string folder;
  Known known;
  int64_t commands[kThreads] = {};
  while (cuts_ < wanted && !HasFailure()) {
    if (cuts_ % kCutsOfALedger == 0) {
      folder = Restore({});
      known = {};
    }
    disk.Reset();
    // The first cut of a ledger falls into its migrations, or soon after them.
    disk.CutAfter(Random(1, cuts_ % kCutsOfALedger == 0 ? 60 : 800),
                  static_cast<uint64_t>(Random(0, 1 << 30)));
    {
      LedgerService ledger(Options(folder), SystemClock::Get());
      const auto started = ledger.Start();
      ASSERT_TRUE(started.ok()) << started.error().internal << " after cut " << cuts_;
      cuts_at_start_ += disk.cut() ? 1 : 0;
      std::vector<std::thread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] { Work(ledger, i, known, commands[i]); });
      }
      for (std::thread& thread : threads) thread.join();
    }
    ++cuts_;
    const auto image = disk.TakeImage();
    std::filesystem::remove_all(folder);
    disk.Reset();
    folder = Restore(image);
    {
      LedgerService ledger(Options(folder), SystemClock::Get());
      const auto started = ledger.Start();
      ASSERT_TRUE(started.ok()) << started.error().internal << " after cut " << cuts_;
      CheckKnown(ledger, known);
    }
  }
  Report(wanted);
  EXPECT_GT(checked_, 0);
}

INSTANTIATE_TEST_SUITE_P(Both, PowerCutTest, ::testing::Bool(), [](const auto& info) {
  return info.param ? std::string("holds_before_disk") : std::string("every_commit_flushed");
});

}  // namespace
}  // namespace tollgate::billing
