#include "services/inference_router/balancer/wait_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "services/inference_router/balancer/routing_table.h"
#include "services/inference_router/balancer/testing/two_engines.h"

namespace tollgate::inference_router {
namespace {

using Entered = WaitQueue::Entered;

// Two engines with one place each.
class WaitQueueTest : public ::testing::Test {
 protected:
  struct One {
    WaitQueue::Request request;
    int woken = 0;
  };
  One& Make(const std::string& workspace, int64_t cost = 100, int64_t bytes = 0) {
    One& one = ones_.emplace_back();
    one.request.workspace = workspace;
    one.request.cost = cost;
    one.request.bytes = bytes;
    one.request.engines = &engines();
    one.request.wake = [&one] { ++one.woken; };
    return one;
  }
  const std::vector<EnginePointer>& engines() { return table_.Find("ns/m")->engines; }
  Entered Enter(One& one, bool may_wait = true) {
    auto answer = queue_.Enter(one.request, may_wait, now_us_, ++rotation_);
    if (answer.selection.engine) running_.push_back(answer.selection.engine);
    retry_after_ms_ = answer.selection.retry_after_ms;
    no_engine_ = answer.selection.no_engine;
    return answer.entered;
  }
  // Fills both places.
  void Fill() {
    while (running_.size() < 2) ASSERT_EQ(Enter(Make("other")), Entered::kGranted);
  }
  // Ends one request. Returns the workspace of the request that gets the place.
  std::string Next() {
    running_.front()->Leave();
    running_.pop_front();
    now_us_ += 100'000;
    queue_.Grant(now_us_);
    for (One& one : ones_) {
      if (one.woken != 1) continue;
      one.woken = 2;
      const auto answer = queue_.Withdraw(one.request, now_us_);
      EXPECT_EQ(answer.entered, Entered::kGranted);
      running_.push_back(answer.selection.engine);
      return one.request.workspace;
    }
    return "";
  }

  int64_t now_us_ = 1'000'000'000;
  uint64_t rotation_ = 0;
  int64_t retry_after_ms_ = 0;
  NoEngine no_engine_ = NoEngine::kNone;
  RoutingTable table_{TwoEngines(1), nullptr};
  WaitQueue queue_{{.max_requests = 8, .max_bytes = 1000}};
  std::deque<One> ones_;
  std::deque<EnginePointer> running_;
};

TEST_F(WaitQueueTest, ARequestThatFindsAPlaceDoesNotWait) {
  Fill();
  EXPECT_EQ(queue_.waiting(), 0u);
  EXPECT_EQ(Enter(Make("a"), /*may_wait=*/false), Entered::kFull);
  EXPECT_EQ(no_engine_, NoEngine::kSaturated) << "the queue has room";
  EXPECT_GE(retry_after_ms_, 1000);
}

TEST_F(WaitQueueTest, RequestsOfOneWorkspaceKeepTheirOrder) {
  Fill();
  One& first = Make("a");
  One& second = Make("a");
  EXPECT_EQ(Enter(first), Entered::kWaiting);
  EXPECT_EQ(Enter(second), Entered::kWaiting);
  EXPECT_EQ(Next(), "a");
  EXPECT_EQ(first.woken, 2);
  EXPECT_EQ(second.woken, 0);
}

// A flood delays only itself.
TEST_F(WaitQueueTest, AWorkspaceWithOneRequestIsNextBeforeOneWithMany) {
  Fill();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Enter(Make("flood")), Entered::kWaiting);
  EXPECT_EQ(Next(), "flood");
  EXPECT_EQ(Enter(Make("quiet")), Entered::kWaiting);
  const std::string next = Next();
  EXPECT_EQ(next == "quiet" ? next : Next(), "quiet") << "first or, at the same turn, second";
}

TEST_F(WaitQueueTest, PlacesAreSharedByWhatRequestsTakeNotByTheirNumber) {
  Fill();
  for (int i = 0; i < 2; ++i) Enter(Make("large", 400));
  for (int i = 0; i < 6; ++i) Enter(Make("small", 100));
  std::map<std::string, int> given;
  for (int i = 0; i < 5; ++i) ++given[Next()];
  EXPECT_EQ(given["large"], 1);
  EXPECT_EQ(given["small"], 4);
}

TEST_F(WaitQueueTest, WhenItIsFullTheWorkspaceWithMostRequestsIsRefused) {
  Fill();
  std::vector<One*> flood;
  for (int i = 0; i < 8; ++i) {
    flood.push_back(&Make("flood"));
    EXPECT_EQ(Enter(*flood.back()), Entered::kWaiting);
  }
  EXPECT_EQ(Enter(Make("flood")), Entered::kFull) << "its own";
  EXPECT_EQ(no_engine_, NoEngine::kQueueFull);
  EXPECT_EQ(Enter(Make("quiet")), Entered::kWaiting);
  EXPECT_EQ(flood.back()->woken, 1) << "the newest made room";
  const WaitQueue::Answer refused = queue_.Withdraw(flood.back()->request, now_us_);
  EXPECT_EQ(refused.entered, Entered::kFull);
  EXPECT_EQ(refused.selection.no_engine, NoEngine::kQueueFull);
  flood.back()->woken = 2;
  EXPECT_EQ(queue_.waiting(), 8u);
}

TEST_F(WaitQueueTest, BytesOfBodiesAreBoundedToo) {
  Fill();
  EXPECT_EQ(Enter(Make("a", 1, 1001)), Entered::kFull) << "too large by itself";
  EXPECT_EQ(Enter(Make("a", 1, 400)), Entered::kWaiting);
  EXPECT_EQ(Enter(Make("a", 1, 400)), Entered::kWaiting);
  EXPECT_EQ(Enter(Make("a", 1, 400)), Entered::kFull);
  EXPECT_EQ(Enter(Make("b", 1, 400)), Entered::kWaiting);
  EXPECT_EQ(queue_.waiting(), 2u);
}

TEST_F(WaitQueueTest, WhoLeavesCostsNothingAndHoldsNoPlace) {
  Fill();
  One& leaves = Make("a");
  Enter(leaves);
  Enter(Make("b"));
  EXPECT_EQ(queue_.Withdraw(leaves.request, now_us_).entered, Entered::kWaiting);
  EXPECT_EQ(Next(), "b");
  EXPECT_EQ(leaves.woken, 0);
  for (const auto& engine : running_) engine->Leave();
  for (const auto& engine : engines()) EXPECT_EQ(engine->running(), 0);
}

TEST_F(WaitQueueTest, WithoutAUsableEngineNobodyWaits) {
  for (const auto& engine : engines()) engine->OnHealthFailure(true, 1);
  EXPECT_EQ(Enter(Make("a")), Entered::kDown);
  EXPECT_EQ(queue_.waiting(), 0u);
}

TEST_F(WaitQueueTest, AnEngineThatRecoversIsUsedAtTheNextLook) {
  Fill();
  Enter(Make("a"));
  engines()[0]->OnHealthFailure(true, 1);
  running_.clear();
  for (const auto& engine : engines()) engine->Leave();
  engines()[0]->OnSuccess(now_us_);
  queue_.Grant(now_us_);
  EXPECT_EQ(ones_.back().woken, 1);
}

TEST_F(WaitQueueTest, RetryAfterFollowsHowFastPlacesBecomeFree) {
  Fill();
  for (int i = 0; i < 8; ++i) Enter(Make("flood"));
  EXPECT_EQ(queue_.RetryAfterMs(), 1000) << "nothing is known yet";
  const auto slow = [this] { now_us_ += 9'900'000; };
  for (int i = 0; i < 6; ++i) {
    slow();
    Next();
  }
  // One place every 10 s: the average follows.
  EXPECT_GT(queue_.RetryAfterMs(), 10'000);
  EXPECT_LE(queue_.RetryAfterMs(), 60'000);
}

// ---- classes of priority, ADR 0032 ----

class WaitQueueClasses : public WaitQueueTest {
 protected:
  One& Wait(const std::string& workspace, PriorityClass priority, int64_t cost = 100) {
    One& one = Make(workspace, cost);
    one.request.priority = priority;
    EXPECT_EQ(Enter(one), Entered::kWaiting) << workspace;
    return one;
  }
  // Frees this many places. A workspace that was given one asks again immediately.
  std::map<std::string, int> Give(int places, const std::map<std::string, PriorityClass>& classes) {
    std::map<std::string, int> given;
    for (int i = 0; i < places; ++i) {
      const std::string next = Next();
      ++given[next];
      Wait(next, classes.at(next));
    }
    return given;
  }
};

TEST_F(WaitQueueClasses, AHigherClassIsGivenFourTimesAsMuchAndNoneStarves) {
  Fill();
  const std::map<std::string, PriorityClass> classes = {{"low", PriorityClass::kLow},
                                                        {"normal", PriorityClass::kNormal},
                                                        {"high", PriorityClass::kHigh}};
  for (const auto& [name, priority] : classes) {
    Wait(name, priority);
    Wait(name, priority);
  }
  auto given = Give(210, classes);
  EXPECT_NEAR(given["high"], 160, 3);
  EXPECT_NEAR(given["normal"], 40, 3);
  EXPECT_NEAR(given["low"], 10, 3);
}

TEST_F(WaitQueueClasses, ARequestOfAHigherClassPassesThoseThatWaitedBefore) {
  Fill();
  for (const char* workspace : {"a", "b", "c", "d"}) Wait(workspace, PriorityClass::kLow);
  EXPECT_EQ(Next(), "a");
  EXPECT_EQ(Next(), "b");
  Wait("urgent", PriorityClass::kHigh);
  EXPECT_EQ(Next(), "urgent");
  EXPECT_EQ(Next(), "c");
}

TEST_F(WaitQueueClasses, WithinAClassWorkspacesTakeTurnsAsBefore) {
  Fill();
  for (int i = 0; i < 4; ++i) Wait("flood", PriorityClass::kHigh);
  EXPECT_EQ(Next(), "flood");
  Wait("quiet", PriorityClass::kHigh);
  const std::string next = Next();
  EXPECT_EQ(next == "quiet" ? next : Next(), "quiet");
}

// A workspace may use models of two classes.
TEST_F(WaitQueueClasses, OneWorkspaceInTwoClassesWaitsInEach) {
  Fill();
  for (int i = 0; i < 3; ++i) Wait("a", PriorityClass::kLow);
  One& urgent = Wait("a", PriorityClass::kHigh);
  Next();
  Next();
  EXPECT_EQ(urgent.woken, 2) << "at the latest second, not behind the others of its workspace";
}

TEST_F(WaitQueueClasses, ALowFloodMakesRoomForAHigherClass) {
  Fill();
  std::vector<One*> low;
  for (int i = 0; i < 8; ++i) low.push_back(&Wait("low" + std::to_string(i), PriorityClass::kLow));
  Wait("high", PriorityClass::kHigh);
  int refused = 0;
  for (One* one : low) refused += one->woken;
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(queue_.waiting(), 8u);
}

TEST_F(WaitQueueClasses, AHighFloodLeavesALowerClassItsShareOfTheQueue) {
  WaitQueue large({.max_requests = 42, .max_bytes = 1'000});
  Fill();
  std::deque<One> high(42);
  int number = 0;
  const auto enter = [&](One& one, PriorityClass priority) {
    one.request.workspace = "w" + std::to_string(++number);
    one.request.priority = priority;
    one.request.engines = &engines();
    one.request.wake = [&one] { ++one.woken; };
    return large.Enter(one.request, true, now_us_, ++rotation_).entered;
  };
  for (One& one : high) ASSERT_EQ(enter(one, PriorityClass::kHigh), Entered::kWaiting);
  One low, more;
  EXPECT_EQ(enter(low, PriorityClass::kLow), Entered::kWaiting) << "42 are more than its 16";
  EXPECT_EQ(enter(more, PriorityClass::kHigh), Entered::kFull)
      << "41 are more than 16 for each low";
  EXPECT_EQ(low.woken, 0);
}

// A place that becomes free while a request enters is not lost, whichever happens first.
TEST_F(WaitQueueTest, NoWakeIsLostBetweenThreads) {
  std::atomic<int> served{0};
  const auto work = [&](const char* workspace) {
    for (int i = 0; i < 2'000; ++i) {
      std::mutex mutex;
      std::condition_variable changed;
      bool woken = false;
      WaitQueue::Request request;
      request.workspace = workspace;
      request.engines = &engines();
      request.wake = [&] {
        std::lock_guard lock(mutex);
        woken = true;
        changed.notify_all();
      };
      auto answer = queue_.Enter(request, true, now_us_, static_cast<uint64_t>(i));
      if (answer.entered == Entered::kWaiting) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return woken; });
        answer = queue_.Withdraw(request, now_us_);
      }
      if (answer.entered != Entered::kGranted) {
        ADD_FAILURE() << "four callers, room for eight";
        return;
      }
      ++served;
      answer.selection.engine->Leave();
      queue_.Grant(now_us_);
    }
  };
  std::vector<std::thread> threads;
  for (const char* workspace : {"a", "b", "c", "d"}) threads.emplace_back(work, workspace);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(served, 8'000);
  EXPECT_EQ(queue_.waiting(), 0u);
}

TEST(WaitQueueOfATable, AReloadKeepsTheQueueOfAPool) {
  RoutingTable first(TwoEngines(1), nullptr);
  RoutingTable second(TwoEngines(2), &first);
  EXPECT_EQ(first.Find("ns/m")->queue, second.Find("ns/m")->queue);
}

}  // namespace
}  // namespace tollgate::inference_router
