// The ledger is verified once a night by a process of its own; its result is in the table and in
// the metrics. A script stands in for the process.
#include "services/billing/verify/nightly_verification.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "common/base/time_units.h"
#include "services/billing/storage/testing/ledger_database.h"
#include "services/billing/verify/verifications.h"

namespace tollgate::billing {
namespace {

constexpr std::string_view kConsistent =
    R"(echo '{"ok":true,"workspaces":1,"entries":7,"holds":2,"usage_records":1,"commands":1,"violations":[]}')";

class NightlyVerificationTest : public LedgerDatabaseTest {
 protected:
  void SetUp() override {
    LedgerDatabaseTest::SetUp();
    if (!connection_) return;
    options_.sql = database_->options();
    options_.first_ms = options_.interval_ms = 1'000'000'000;  // rounds are called
  }
  // Runs a round whose process is this script.
  std::string Round(const std::string& script, int64_t now_us) {
    options_.program = {"/bin/sh", "-c", script, "sh"};
    NightlyVerification nightly(options_, [now_us] { return now_us; }, [] { return true; });
    EXPECT_TRUE(nightly.Start().ok());
    return nightly.Round(now_us);
  }
  std::vector<Verification> All() {
    auto all = ListVerifications(*database_, Id(), 100, kNow);
    EXPECT_TRUE(all.ok());
    return all.ok() ? *all : std::vector<Verification>();
  }
  static double Gauge(const std::string& name) {
    return metrics::Gauge("tollgate_billing_nightly_verification_" + name, "").Value();
  }
  static constexpr int64_t kNow = 20'000 * kDayUs + 3 * kHourUs;
  NightlyVerification::Options options_;
};

TEST_P(NightlyVerificationTest, OneRunsEachNightWhicheverReplicaBeginsIt) {
  EXPECT_EQ(Round(std::string(kConsistent), kNow), "");
  ASSERT_EQ(All().size(), 1u);
  EXPECT_EQ(All()[0].state, VerificationState::kConsistent);
  EXPECT_EQ(All()[0].report.entries, 7);
  EXPECT_EQ(All()[0].actor, "tollgate-billing");
  EXPECT_EQ(Round("exit 9", kNow + kHourUs), "") << "done this night";
  EXPECT_EQ(Gauge("age_seconds"), 3600);
  EXPECT_EQ(Gauge("violations"), 0);
  EXPECT_EQ(Round(R"(echo '{"entries":8,"violations":["one","two"]}'; exit 1)", kNow + kDayUs), "");
  ASSERT_EQ(All().size(), 2u);
  EXPECT_EQ(All()[0].state, VerificationState::kViolated);
  EXPECT_EQ(All()[0].report.violations, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(Gauge("violations"), 2);
}

TEST_P(NightlyVerificationTest, TheProcessGetsTheDatabaseInItsEnvironment) {
  options_.arguments = {"--archive", "/srv/archive"};
  const std::string file = ::testing::TempDir() + "/nightly-" + std::to_string(getpid());
  EXPECT_EQ(
      Round("echo \"$TOLLGATE_LEDGER_DATABASE $*\" > " + file + "; " + std::string(kConsistent),
            kNow),
      "");
  std::string line;
  std::ifstream in(file);
  std::getline(in, line);
  EXPECT_EQ(line, options_.sql.url + " verify --json --low-priority --archive /srv/archive");
  std::filesystem::remove(file);
}

TEST_P(NightlyVerificationTest, OneWithoutAResultIsTriedAgainAnHourLater) {
  EXPECT_EQ(Round("echo no such database; exit 1", kNow),
            "the verification ended without a result: no such database");
  EXPECT_EQ(All()[0].state, VerificationState::kBrokenOff);
  EXPECT_EQ(Round(std::string(kConsistent), kNow + kHourUs / 2), "");
  EXPECT_EQ(All().size(), 1u);
  EXPECT_EQ(Round(std::string(kConsistent), kNow + 2 * kHourUs), "");
  EXPECT_EQ(All()[0].state, VerificationState::kConsistent);
}

TEST_P(NightlyVerificationTest, AStopEndsTheProcess) {
  options_.program = {"/bin/sh", "-c", "exec sleep 1000", "sh"};
  options_.first_ms = 0;
  std::atomic<bool> asked = false;
  NightlyVerification nightly(
      options_, [] { return kNow; },
      [&] {
        asked = true;
        return true;
      });
  ASSERT_TRUE(nightly.Start().ok());
  while (!asked || All().empty()) std::this_thread::yield();
  nightly.Stop();
  EXPECT_EQ(All()[0].state, VerificationState::kBrokenOff);
}

TEST_P(NightlyVerificationTest, AnOperatorsVerificationGoesFirst) {
  // The process reports until it is stopped; the operator asks during its first report.
  options_.program = {"/usr/bin/timeout", "60", "/bin/sh", "-c", "while echo; do :; done", "sh"};
  Verification asked;
  asked.id = Id::New();
  asked.actor = "operator:olga";
  asked.request_id = "r1";
  std::atomic<bool> begun = false;
  NightlyVerification nightly(
      options_,
      [&] {
        if (!begun.exchange(true)) {
          auto mine = BeginVerification(*database_, asked, asked.actor, /*may_run=*/true, kNow + 1);
          EXPECT_TRUE(mine.ok() && mine->fresh) << "the nightly verification is in the way";
        }
        return kNow + 1;
      },
      [] { return true; });
  ASSERT_TRUE(nightly.Start().ok());
  EXPECT_EQ(nightly.Round(kNow), "");
  const auto all = All();
  ASSERT_EQ(all.size(), 2u);
  for (const Verification& one : all) {
    EXPECT_EQ(one.state, one.actor == kNightlyActor ? VerificationState::kBrokenOff
                                                    : VerificationState::kRunning);
  }
}

INSTANTIATE_TEST_SUITE_P(Both, NightlyVerificationTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
