// See H49.
#include "gateway/worker/lookup_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "common/runtime/testing/run_coro.h"

namespace tollgate::gateway {
namespace {

class LookupBudgetTest : public ::testing::Test {
 protected:
  LookupBudgetTest() { pool.Start(); }
  ~LookupBudgetTest() override {
    OnLoop([&](Loop&) { budget.reset(); });
  }

  void OnLoop(const std::function<void(Loop&)>& callback) {
    tollgate::testing::RunOn(pool.loop(0), [&](Loop& loop) -> Task<int> {
      callback(loop);
      co_return 0;
    });
  }
  void Make(LookupBudget::Options options) {
    OnLoop([&](Loop& loop) { budget = std::make_shared<LookupBudget>(loop, clock, options); });
  }
  // Starts waiting for a permit.
  void Take(const std::string& address) {
    OnLoop([&](Loop& loop) {
      ++started;
      loop.Spawn([](LookupBudgetTest& test, std::shared_ptr<LookupBudget> budget,
                    std::string address) -> Task<void> {
        const bool granted = co_await budget->Take(AddressSubject::FromText(address));
        ++(granted ? test.granted : test.refused)[address];
        ++test.finished;
      }(*this, budget, address));
    });
    OnLoop([](Loop&) {});
  }
  // Returns permits and waits until the waiters have them.
  void GiveBack(int permits) {
    int waiting = 0;
    int before = 0;
    OnLoop([&](Loop&) {
      waiting = static_cast<int>(budget->waiting());
      before = finished;
      for (int i = 0; i < permits; ++i) budget->GiveBack();
    });
    WaitForFinished(before + std::min(permits, waiting));
  }
  void WaitForFinished(int count) {
    bool done = false;
    while (!done) OnLoop([&](Loop&) { done = finished >= count; });
  }
  void WaitForAll() { WaitForFinished(started); }

  LoopPool pool{1};
  ManualClock clock;
  std::shared_ptr<LookupBudget> budget;
  std::map<std::string, int> granted;
  std::map<std::string, int> refused;
  int started = 0;
  int finished = 0;
};

TEST_F(LookupBudgetTest, GrantsABurstAndThenWhatIsGivenBack) {
  Make({.interval_us = 1'000'000, .burst = 3, .max_wait_ms = 60'000});
  for (int i = 0; i < 5; ++i) Take("10.0.0.1");
  EXPECT_EQ(granted["10.0.0.1"], 3);
  GiveBack(1);
  EXPECT_EQ(granted["10.0.0.1"], 4);
  GiveBack(1);
  EXPECT_EQ(granted["10.0.0.1"], 5);
  WaitForAll();
}

TEST_F(LookupBudgetTest, PermitsComeBackWithTime) {
  Make({.interval_us = 10'000, .burst = 1, .max_wait_ms = 60'000});
  Take("10.0.0.1");
  Take("10.0.0.1");
  EXPECT_EQ(granted["10.0.0.1"], 1);
  clock.Advance(10'000);
  WaitForAll();
  EXPECT_EQ(granted["10.0.0.1"], 2);
}

TEST_F(LookupBudgetTest, AddressesTakeTurns) {
  Make({.interval_us = 1'000'000'000, .burst = 1, .max_wait_ms = 60'000});
  Take("10.0.0.9");
  for (int i = 0; i < 10; ++i) {
    Take("10.6.6.6");
    Take("2001:db8:1:2::" + std::to_string(i + 1));
  }
  Take("10.0.0.1");  // last
  GiveBack(3);
  EXPECT_EQ(granted["10.6.6.6"], 1);
  EXPECT_EQ(granted["2001:db8:1:2::1"], 1) << "the network is one";
  EXPECT_EQ(granted["10.0.0.1"], 1);
  GiveBack(19);
  WaitForAll();
}

TEST_F(LookupBudgetTest, AnAddressThatWasGrantedMayWaitAgain) {
  Make({.interval_us = 1'000'000'000, .burst = 1, .max_wait_ms = 60'000});
  Take("10.0.0.9");
  Take("10.0.0.1");
  Take("10.0.0.2");
  GiveBack(1);  // goes to 10.0.0.1, while 10.0.0.2 still waits
  Take("10.0.0.1");
  GiveBack(3);
  WaitForAll();
  EXPECT_EQ(granted["10.0.0.1"], 2);
  EXPECT_EQ(granted["10.0.0.2"], 1);
}

TEST_F(LookupBudgetTest, FewAddressesCannotKeepOthersOut) {
  Make({.interval_us = 1'000'000'000,
        .burst = 1,
        .max_waiting_per_address = 20,
        .max_waiting = 40,
        .max_wait_ms = 60'000});
  Take("10.0.0.9");
  for (int i = 0; i < 25; ++i) {
    Take("10.6.6.1");
    Take("10.6.6.2");
  }
  EXPECT_EQ(refused["10.6.6.1"], 5);
  EXPECT_EQ(refused["10.6.6.2"], 5);
  Take("10.6.6.1");
  EXPECT_EQ(refused["10.6.6.1"], 6);
  Take("10.0.0.1");
  EXPECT_EQ(refused["10.0.0.1"], 0);
  OnLoop([&](Loop&) { EXPECT_EQ(budget->waiting(), 41u); });
  // The total is bounded by twice max_waiting.
  for (int i = 0; i < 100; ++i) Take("10.7.0." + std::to_string(i));
  OnLoop([&](Loop&) { EXPECT_EQ(budget->waiting(), 80u); });
  GiveBack(3);
  EXPECT_EQ(granted["10.0.0.1"], 1);
  GiveBack(77);
  WaitForAll();
}

TEST_F(LookupBudgetTest, NobodyWaitsLongerThanAllowed) {
  Make({.interval_us = 1'000'000'000, .burst = 1, .max_wait_ms = 20});
  Take("10.0.0.9");
  Take("10.0.0.1");
  WaitForAll();
  EXPECT_EQ(refused["10.0.0.1"], 1);
  OnLoop([&](Loop&) { EXPECT_EQ(budget->waiting(), 0u); });
  // A waiter that gave up takes no permit.
  GiveBack(1);
  Take("10.0.0.2");
  EXPECT_EQ(granted["10.0.0.2"], 1);
}

}  // namespace
}  // namespace tollgate::gateway
