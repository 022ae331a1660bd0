// Auto-reload under races: two engines on one database; a provider that loses answers, fails,
// returns wrong data and repeats itself; events that are repeated, reordered, forged or lost;
// engines that crash between any two steps. Every trigger makes exactly one charge and one credit.
//
// TOLLGATE_RELOAD_RACES: number of triggers, default 200 (./dev prove reload: 10,000).
// TOLLGATE_RELOAD_SEED: seed of all random choices, default 1.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "services/billing/payments/testing/payment_world.h"

namespace tollgate::billing::payments {
namespace {

constexpr int kRoundSize = 40;

int64_t Setting(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : fallback;
}

struct Random {
  explicit Random(uint64_t seed) : engine(seed) {}
  int Below(int bound) { return static_cast<int>(engine() % static_cast<uint64_t>(bound)); }
  std::mt19937_64 engine;
};

class ReloadRacesTest : public PaymentTest {
 protected:
  struct Racer {
    std::string workspace;
    std::string customer;
    bool declined = false;  // the first charge is declined
  };

  std::unique_ptr<Replica> MakeCrashing(uint64_t seed) {
    auto random = std::make_shared<Random>(seed);
    PaymentEngine::Options options;
    options.survives = [this, random](std::string_view) {
      const bool crashes = crashing_ && random->Below(100) < 8;
      if (crashes) ++crashes_;
      return !crashes;
    };
    return Make(std::move(options));
  }

  // Delivers events of the provider in any order; some twice, some never, some forged.
  void DeliverEvents(Replica& replica, Random& random) {
    std::vector<ScriptedStripe::Event> events = stripe_.TakeEvents();
    std::shuffle(events.begin(), events.end(), random.engine);
    for (const ScriptedStripe::Event& event : events) {
      const int dice = random.Below(10);
      if (dice < 2) continue;  // lost
      for (int i = 0; i < (dice < 5 ? 2 : 1); ++i) EXPECT_EQ(Deliver(replica, event.body), 200);
      if (dice == 9) {
        ++forged_;
        EXPECT_EQ(
            Deliver(replica, event.body,
                    ScriptedStripe::Sign("whsec_forged", clock_.WallUs() / 1'000'000, event.body)),
            400);
      }
      if (random.Below(4) == 0) kept_.push_back(event.body);
    }
    // Replays an event much later.
    while (kept_.size() > 50) {
      EXPECT_EQ(Deliver(replica, kept_.front()), 200);
      kept_.erase(kept_.begin());
    }
  }

  bool Settled(Replica& replica, const std::vector<Racer>& racers) {
    for (const Racer& racer : racers) {
      const auto reload = replica.admin.GetReload(racer.workspace);
      if (!reload.ok()) return false;
      const auto wanted = racer.declined ? ReloadState::kBackoff : ReloadState::kIdle;
      if (reload->state != wanted || reload->reload_id.empty()) return false;
    }
    return true;
  }

  void Race(int round, std::vector<std::unique_ptr<Replica>>& replicas, Random& random) {
    std::vector<Racer> racers;
    for (int i = 0; i < kRoundSize; ++i) {
      Racer racer;
      racer.workspace = "race-" + std::to_string(round) + "-" + std::to_string(i);
      racer.customer = SaveCard(*calm_, racer.workspace);
      racer.declined = random.Below(5) == 0;
      if (racer.declined) stripe_.DeclineCustomer(racer.customer, "card_declined");
      racers.push_back(racer);
    }
    stripe_.SetFaults({.lost_before = 60,
                       .lost_after = 100,
                       .error_before = 30,
                       .error_after = 60,
                       .busy = 30,
                       .garbage = 30,
                       .another = 20,
                       .wrong_amount = 20,
                       .not_found_yet = 200});
    crashing_ = true;
    for (const Racer& racer : racers) EnableReload(*calm_, racer.workspace);
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (auto& replica : replicas) {
      threads.emplace_back([&] {
        while (!stop) replica->engine.RunOnce();
      });
    }
    bool settled = false;
    for (int turn = 0; turn < 4000 && !settled; ++turn) {
      // Some claims expire while calls run.
      Advance(random.Below(10) == 0 ? 70 : random.Below(3));
      DeliverEvents(*calm_, random);
      if (turn == 400) stripe_.SetFaults({});
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      settled = turn % 10 == 0 && Settled(*calm_, racers);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(settled) << "round " << round;
    crashing_ = false;
    stripe_.SetFaults({});
    DeliverEvents(*calm_, random);
    for (int i = 0; i < 5; ++i) {
      Advance(i < 3 ? 61 : 3700);  // a second charge is given back within an hour
      calm_->engine.RunDue();
    }
    Check(racers);
    for (const Racer& racer : racers) {
      ASSERT_TRUE(calm_->admin.UpdateReload(racer.workspace, {.enabled = false}, "tester").ok());
    }
  }

  void Check(const std::vector<Racer>& racers) {
    std::map<std::string, int64_t> kept_cents;
    std::map<std::string, std::set<std::string>> sent;  // payments
    for (const ScriptedStripe::Intent& intent : stripe_.intents()) {
      sent[intent.workspace].insert(intent.payment);
      if (intent.status != "succeeded") continue;
      kept_cents[intent.workspace] += intent.amount_cents - intent.refunded_cents;
    }
    for (const Racer& racer : racers) {
      auto events = calm_->store.Events(racer.workspace);
      int triggers = 0;
      for (const PaymentEvent& event : *events) {
        // A call that certainly did nothing leads back from submitted.
        triggers +=
            event.subject == "reload" && event.to == "requested" && event.from != "submitted";
      }
      // A declined charge is tried again after an hour.
      if (!racer.declined) EXPECT_EQ(triggers, 1) << racer.workspace;
      EXPECT_EQ(sent[racer.workspace].size(), static_cast<size_t>(triggers)) << racer.workspace;
      EXPECT_EQ(kept_cents[racer.workspace], racer.declined ? 0 : 1000) << racer.workspace;
      EXPECT_EQ(Topups(racer.workspace), racer.declined ? 0 : 1) << racer.workspace;
      EXPECT_EQ(Paid(racer.workspace), racer.declined ? 0 : 10 * kNanoPerUsd) << racer.workspace;
      EXPECT_EQ(CheckEvents(*events), "") << racer.workspace;
    }
  }

  std::atomic<bool> crashing_ = false;
  std::atomic<int> crashes_ = 0;
  int forged_ = 0;
  std::vector<std::string> kept_;
  std::unique_ptr<Replica> calm_;
};
INSTANTIATE_TEST_SUITE_P(All, ReloadRacesTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(ReloadRacesTest, EveryTriggerMakesOneChargeAndOneCredit) {
  const auto races = Setting("TOLLGATE_RELOAD_RACES", 200);
  const auto seed = static_cast<uint64_t>(Setting("TOLLGATE_RELOAD_SEED", 1));
  Random random(seed);
  calm_ = Make();
  std::vector<std::unique_ptr<Replica>> replicas;
  for (uint64_t i = 0; i < 2; ++i) replicas.push_back(MakeCrashing(seed * 10 + i));
  const int rounds = static_cast<int>((races + kRoundSize - 1) / kRoundSize);
  for (int round = 0; round < rounds && !HasFailure(); ++round) Race(round, replicas, random);
  std::printf("RELOAD_RACES database=%s races=%d crashes=%d forged=%d calls=%d seed=%llu\n",
              GetParam() == sql::Dialect::kSqlite ? "sqlite" : "postgres", rounds * kRoundSize,
              crashes_.load(), forged_, stripe_.calls(), static_cast<unsigned long long>(seed));
  EXPECT_GT(crashes_, 0);
}

}  // namespace
}  // namespace tollgate::billing::payments
