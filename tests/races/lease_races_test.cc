// Races for the credit that routers lease: lessees enlarge, use, lose and return leases while other
// requests take ordinary holds, credit is added, caps change, leases expire, and connections are
// lost before the response. In every order, every admitted request is covered, the customer pays
// exactly what was acknowledged, and the ledger verifies. TOLLGATE_LEASE_RACES: number of races on
// each database.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "common/base/ledger_shard.h"
#include "services/billing/domain/testing/lease_world.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/leases.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

constexpr int kLessees = 6;
// Steps of each lessee, in every fourth race and in the others.
constexpr int kSteps[] = {40, 8, 12, 16};

int64_t LeaseSetting(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : fallback;
}

class LeaseRacesTest : public LedgerDatabaseTest {
 protected:
  // The ledger's clock of a race. It never passes the end of a lease that still has requests
  // unknown to the ledger: their cost would no longer be reserved.
  struct Race {
    std::string workspace;
    std::mutex mutex;
    int steps = 0;
    std::atomic<int64_t> now_us = kNowUs;
    std::array<std::atomic<int64_t>, kLessees> limit_us;
    std::atomic<int64_t> ids;
    std::atomic<int64_t> credit_nano_usd = 0;
    std::atomic<int64_t> charged_nano_usd = 0;
    std::atomic<int64_t> admitted = 0;
    std::atomic<int64_t> expired = 0;

    explicit Race(int64_t number)
        : workspace("lease-" + std::to_string(number)),
          steps(kSteps[number % std::ssize(kSteps)]),
          ids(number * 100'000) {
      for (auto& limit : limit_us) limit = INT64_MAX;
    }
    void Advance(int64_t by_us) {
      const std::lock_guard lock(mutex);
      const int64_t now = now_us;
      for (const auto& limit : limit_us) {
        if (now + by_us + kSecondUs >= limit) return;
      }
      now_us += by_us;
    }
    // Whether the lease is valid; if it is, the clock waits for the lessee's requests.
    bool Begin(size_t lessee, int64_t valid_until_us) {
      const std::lock_guard lock(mutex);
      if (now_us >= valid_until_us) return false;
      if (limit_us[lessee] == INT64_MAX) limit_us[lessee] = valid_until_us + 10 * kSecondUs;
      return true;
    }
    Id NewId() { return TestId(static_cast<int>(++ids), kNowUs); }
  };

  // One client or router with its own connection.
  class Actor {
   public:
    Actor(LeaseRacesTest& test, Race& race, uint64_t seed)
        : test_(test), race_(race), random_(seed), connection_(*test.database_->Connect()) {}

    void RunAsRouter(int index) {
      index_ = index;
      for (int i = 0; i < race_.steps; ++i) {
        race_.Advance(static_cast<int64_t>(Below(3'000'000)));
        switch (Below(8)) {
          case 0:
          case 1:
            Take(1 + static_cast<int64_t>(Below(3000)));
            break;
          case 2:
          case 3:
          case 4:
            Admit();
            break;
          case 5:
          case 6:
            Report();
            break;
          default:
            if (Below(3) == 0) Take(0);
            if (Below(6) == 0) Die();
        }
      }
      while (!pending_.empty()) Report();
    }
    void RunAsGateway() {
      for (int i = 0; i < race_.steps; ++i) {
        const Id id = race_.NewId();
        const auto tokens = static_cast<int64_t>(1 + Below(2000));
        const Reply held = Do(MakeAuthorize(id, tokens, 0, race_.workspace));
        if (!held.ok) continue;
        Charged(Do(MakeSettle(id, tokens, 0, Outcome::kCompleted, race_.workspace)));
      }
    }
    void RunAsOwner() {
      for (int i = 0; i < race_.steps / 2; ++i) {
        if (Below(3) == 0) {
          SetCap cap = MakeSetCap("cap" + std::to_string(i), std::nullopt);
          cap.workspace = race_.workspace;
          if (Below(2) == 0) cap.cap_nano_usd = static_cast<int64_t>(Below(300'000));
          Do(cap);
        } else {
          AddCredit credit = MakeAddCredit("more" + std::to_string(i), 1 + Below(5000));
          credit.workspace = race_.workspace;
          credit.granted = Below(2) == 0;
          if (Do(credit).ok) race_.credit_nano_usd += credit.amount_nano_usd;
        }
      }
    }
    // Expires holds as the ledger does.
    void Expire() {
      auto leases = ReadLeases(*connection_, race_.workspace);
      ASSERT_TRUE(leases.ok());
      for (const Lease& lease : *leases) {
        const Reply reply = Do(ExpireLease{lease.workspace, lease.lessee, lease.month});
        race_.expired += reply.ok ? 1 : 0;
      }
    }
    void RunAsLedger() {
      for (int i = 0; i < race_.steps / 2; ++i) {
        race_.Advance(static_cast<int64_t>(Below(20'000'000)));
        Expire();
      }
    }
    uint64_t Below(uint64_t bound) { return random_() % bound; }

   private:
    struct Pending {
      Settle settle;
      bool known = false;
    };

    // Repeats the operation until there is a response, as callers do.
    Reply Do(const Operation& operation) {
      const int tries = Below(8) == 0 ? 2 : 1;
      Reply reply;
      for (int done = 0; done < tries;) {
        auto applied = RunBatch(*connection_, {&operation, 1}, race_.now_us, test_.policy_);
        if (!applied.ok()) {
          EXPECT_TRUE(applied.error().kind == sql::ErrorKind::kUnique ||
                      applied.error().kind == sql::ErrorKind::kRetry ||
                      applied.error().kind == sql::ErrorKind::kLocked)
              << applied.error().message;
          if (applied.error().kind == sql::ErrorKind::kOther) return reply;
          continue;
        }
        EXPECT_TRUE(applied->violations.empty());
        reply = std::move(applied->replies.front());
        if (++done < tries) connection_ = *test_.database_->Connect();
      }
      return reply;
    }
    void Charged(const Reply& reply) {
      EXPECT_TRUE(reply.ok) << static_cast<int>(reply.denied_by);
      race_.charged_nano_usd += reply.charged_nano_usd;
    }
    std::string Lessee() const {
      return "router" + std::to_string(index_) + "." + std::to_string(life_);
    }
    void Take(int64_t wanted) {
      const int64_t asked_us = race_.now_us;
      const Reply reply = Do(TakeLease{race_.workspace, Lessee(), month_, used_, wanted, settled_});
      if (wanted == 0) valid_until_us_ = 0;
      if (!reply.ok || Below(10) == 0) return;  // refused or lost
      month_ = reply.lease.month;
      granted_ = reply.lease.granted_nano_usd;
      if (wanted > 0) valid_until_us_ = asked_us + reply.lease.valid_ms * 1000;
    }
    void Admit() {
      const auto tokens = static_cast<int64_t>(1 + Below(400));
      const int64_t amount = tokens + static_cast<int64_t>(Below(100));
      if (used_ + amount > granted_ || !race_.Begin(index_, valid_until_us_)) return;
      used_ += amount;
      Pending one;
      one.settle = MakeSettle(race_.NewId(), tokens, 0, Outcome::kCompleted, race_.workspace);
      auto admission = *MakeAdmission(one.settle.request_id, tokens, amount, month_, Lessee());
      admission.authorize.workspace = race_.workspace;
      one.settle.admission = std::make_shared<const Admission>(std::move(admission));
      pending_.push_back(std::move(one));
      ++race_.admitted;
    }
    void Report() {
      if (pending_.empty()) return;
      Pending one = std::move(pending_.front());
      pending_.pop_front();
      const Settle& settle = one.settle;
      if (Below(4) == 0) {
        const Heartbeat alive{settle.request_id, settle.workspace, 1, settle.usage, 0,
                              settle.admission};
        EXPECT_TRUE(Do(alive).ok);
      }
      if (Below(10) == 0) {
        // The caller got an error.
        EXPECT_TRUE(Do(Void{settle.request_id, settle.workspace, "test", true}).ok);
        EXPECT_EQ(Do(settle).denied_by, Deny::kClosed);
      } else {
        Charged(Do(settle));
      }
      settled_ += settle.admission->authorized_nano_usd;
      if (pending_.empty()) race_.limit_us[index_] = INT64_MAX;
    }
    // The lessee crashes: its files are delivered, its lease expires.
    void Die() {
      while (!pending_.empty()) Report();
      ++life_;
      month_ = 0;
      used_ = settled_ = granted_ = valid_until_us_ = 0;
    }

    LeaseRacesTest& test_;
    Race& race_;
    std::mt19937_64 random_;
    std::unique_ptr<sql::Connection> connection_;
    size_t index_ = 0;
    int life_ = 0;
    int32_t month_ = 0;
    int64_t used_ = 0;
    int64_t settled_ = 0;  // part of it
    int64_t granted_ = 0;
    int64_t valid_until_us_ = 0;
    std::deque<Pending> pending_;
  };

  void RunRace(Race& race, uint64_t seed) {
    AddCredit credit = MakeAddCredit("c", 50'000 + static_cast<int64_t>(seed % 100'000));
    credit.workspace = race.workspace;
    ASSERT_TRUE(Run({credit}).replies.front().ok);
    race.credit_nano_usd = credit.amount_nano_usd;
    std::vector<std::thread> threads;
    const auto start = [&](auto part) {
      threads.emplace_back([this, &race, part, own = seed * 100 + threads.size()] {
        Actor actor(*this, race, own);
        part(actor);
      });
    };
    for (int i = 0; i < kLessees; ++i) start([i](Actor& actor) { actor.RunAsRouter(i); });
    start([](Actor& actor) { actor.RunAsGateway(); });
    start([](Actor& actor) { actor.RunAsOwner(); });
    start([](Actor& actor) { actor.RunAsLedger(); });
    for (std::thread& thread : threads) thread.join();
    race.now_us += 120 * kSecondUs;
    Actor(*this, race, seed).Expire();
  }

  void Check(const Race& race) {
    const Balance balance = *ReadBalance(*database_, race.workspace, race.now_us);
    EXPECT_EQ(balance.paid_nano_usd + balance.granted_nano_usd,
              race.credit_nano_usd - race.charged_nano_usd);
    EXPECT_EQ(balance.held_nano_usd, 0) << race.workspace;
    EXPECT_EQ(balance.month_held_nano_usd, 0) << race.workspace;
    EXPECT_EQ(balance.open_holds, 0) << race.workspace;
    int64_t overrun = -1;
    auto read = connection_->Query(
        "SELECT CAST(coalesce(sum(overrun), 0) AS BIGINT) FROM usage_record WHERE shard = $1 AND"
        " workspace = $2",
        {LedgerShard(race.workspace), race.workspace},
        [&](const sql::Row& row) { overrun = row.Int(0); });
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(overrun, 0) << race.workspace << ": an admitted request was not covered";
  }
};

TEST_P(LeaseRacesTest, WhatIsAdmittedIsCovered) {
  const int64_t count = LeaseSetting("TOLLGATE_LEASE_RACES", 8);
  const auto began = std::chrono::steady_clock::now();
  const auto seed = static_cast<uint64_t>(LeaseSetting("TOLLGATE_RACES_SEED", 1));
  int64_t admitted = 0, expired = 0;
  for (int64_t i = 0; i < count && !HasFailure(); ++i) {
    Race race(i);
    RunRace(race, seed * 1'000'000 + static_cast<uint64_t>(i));
    Check(race);
    admitted += race.admitted;
    expired += race.expired;
  }
  ExpectVerified();
  EXPECT_GT(admitted, count);
  EXPECT_GT(expired, 0);
  if (!HasFailure()) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::printf("LEASE_RACES %s races=%lld admitted=%lld expired=%lld seconds=%.0f seed=%llu\n",
                GetParam() == sql::Dialect::kSqlite ? "sqlite" : "postgres",
                static_cast<long long>(count), static_cast<long long>(admitted),
                static_cast<long long>(expired), took.count(),
                static_cast<unsigned long long>(seed));
  }
}

INSTANTIATE_TEST_SUITE_P(Both, LeaseRacesTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
