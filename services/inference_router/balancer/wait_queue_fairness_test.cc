// How much a workspace that floods a pool delays another one, in simulated time. The time to the
// first token is the wait plus 300 ms in which the engine reads the prompt. The figures are in
// docs/performance.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "services/inference_router/balancer/routing_table.h"
#include "services/inference_router/balancer/testing/two_engines.h"
#include "services/inference_router/balancer/wait_queue.h"

namespace tollgate::inference_router {
namespace {

constexpr double kReadMs = 300;

class Pool {
 public:
  // Two engines. Answers take 1 to 9 s.
  Pool(int64_t places, uint32_t seed)
      : random_(seed), table_(TwoEngines(places / 2), nullptr), queue_({.max_requests = 5'000}) {}

  // Sends requests at random times with this average rate.
  void Send(const std::string& workspace, double per_second) {
    At(now_us_ + Exponential(1e6 / per_second), [this, workspace, per_second] {
      Submit(workspace, false);
      Send(workspace, per_second);
    });
  }
  // Keeps this many requests in flight: when one ends, the next is sent.
  void KeepAsking(const std::string& workspace, int requests) {
    for (int i = 0; i < requests; ++i) Submit(workspace, true);
  }
  void Run(int64_t seconds) {
    const int64_t until_us = now_us_ + seconds * 1'000'000;
    while (events_.top().at_us <= until_us) {
      const std::function<void()> event = events_.top().run;
      now_us_ = events_.top().at_us;
      events_.pop();
      event();
    }
  }
  // Milliseconds until the first token, sorted.
  std::vector<double> Times(const std::string& workspace) const {
    std::vector<double> times;
    for (const One& one : ones_) {
      if (one.request.workspace == workspace && one.begun_us > 0) {
        times.push_back(static_cast<double>(one.begun_us - one.sent_us) / 1e3 + kReadMs);
      }
    }
    std::sort(times.begin(), times.end());
    return times;
  }
  size_t waiting() const { return queue_.waiting(); }
  int64_t running() const {
    int64_t running = 0;
    for (const auto& engine : table_.engines()) running += engine->running();
    return running;
  }

 private:
  struct One {
    WaitQueue::Request request;
    int64_t sent_us = 0, begun_us = 0;
    bool again = false;
  };
  struct Event {
    int64_t at_us;
    uint64_t number;
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return at_us != other.at_us ? at_us > other.at_us : number > other.number;
    }
  };

  void At(int64_t at_us, std::function<void()> run) {
    events_.push({at_us, ++last_, std::move(run)});
  }
  int64_t Exponential(double mean) {
    return static_cast<int64_t>(std::exponential_distribution<double>(1 / mean)(random_));
  }
  void Submit(const std::string& workspace, bool again) {
    One& one = ones_.emplace_back();
    one.request.workspace = workspace;
    one.request.cost = 2'000;
    one.request.engines = &table_.Find("ns/m")->engines;
    one.request.wake = [this, &one] { woken_.push_back(&one); };
    one.sent_us = now_us_;
    one.again = again;
    const auto answer = queue_.Enter(one.request, true, now_us_, ++last_);
    if (answer.entered == WaitQueue::Entered::kGranted) Begin(one, answer.selection.engine);
    BeginWoken();
  }
  void BeginWoken() {
    for (One* one : std::exchange(woken_, {})) {
      Begin(*one, queue_.Withdraw(one->request, now_us_).selection.engine);
    }
  }
  void Begin(One& one, const EnginePointer& engine) {
    ASSERT_NE(engine, nullptr);
    one.begun_us = now_us_;
    const auto takes_us = static_cast<int64_t>(1'000'000 + random_() % 8'000'000);
    At(now_us_ + takes_us, [this, &one, engine] {
      engine->Leave();
      queue_.Grant(now_us_);
      BeginWoken();
      if (one.again) Submit(one.request.workspace, true);
    });
  }

  std::mt19937 random_;
  RoutingTable table_;
  WaitQueue queue_;
  std::priority_queue<Event> events_;
  std::deque<One> ones_;
  std::vector<One*> woken_;
  int64_t now_us_ = 1'000'000'000;
  uint64_t last_ = 0;
};

double Mean(const std::vector<double>& times) {
  double sum = 0;
  for (const double time : times) sum += time;
  return sum / static_cast<double>(times.size());
}

double Percentile95(const std::vector<double>& times) { return times[times.size() * 95 / 100]; }

// Without the flood the pool is two thirds full, so nobody waits.
std::vector<double> QuietOfManyPlaces(int flood, uint32_t seed) {
  Pool pool(128, seed);
  for (const char* workspace : {"a", "b", "c", "d"}) pool.Send(workspace, 4);
  pool.Send("quiet", 1);
  pool.KeepAsking("flood", flood);
  pool.Run(1'500);
  EXPECT_EQ(pool.waiting() > 0, flood > 0);
  return pool.Times("quiet");
}

TEST(WaitQueueFairness, AFloodRaisesTheTimeToTheFirstTokenByAtMostAFifth) {
  for (const uint32_t seed : {1u, 2u, 3u}) {
    const auto before = QuietOfManyPlaces(0, seed);
    const auto flooded = QuietOfManyPlaces(1'000, seed);
    ASSERT_GT(flooded.size(), 1'000u);
    const std::string name = "_" + std::to_string(seed);
    RecordProperty("before_ms" + name, std::to_string(Mean(before)));
    RecordProperty("flooded_ms" + name, std::to_string(Mean(flooded)));
    RecordProperty("flooded_p95_ms" + name, std::to_string(Percentile95(flooded)));
    EXPECT_LE(Mean(flooded), 1.2 * Mean(before)) << seed;
  }
}

TEST(WaitQueueFairness, PlacesAreSparedOnlyWhileOthersCome) {
  Pool pool(128, 1);
  pool.KeepAsking("flood", 1'000);
  pool.Run(30);
  EXPECT_EQ(pool.running(), 128) << "there is nobody to spare them for";
  pool.KeepAsking("quiet", 1);
  pool.Run(20);
  EXPECT_LE(pool.running(), 121);
  EXPECT_GE(pool.running(), 120) << "one of sixteen";
}

// In a small pool a place becomes free every 0.6 s. A workspace that asks for more than is free
// makes each other request wait that long, but no longer, however much it asks for.
std::vector<double> QuietOfFewPlaces(int requests, uint32_t seed) {
  Pool pool(8, seed);
  pool.Send("quiet", 0.2);
  pool.KeepAsking("other", requests);
  pool.Run(20'000);
  return pool.Times("quiet");
}

TEST(WaitQueueFairness, InASmallPoolAFloodRaisesItByNoMoreThanAFewRequestsDo) {
  for (const uint32_t seed : {1u, 2u, 3u}) {
    const auto few = QuietOfFewPlaces(10, seed);
    const auto flooded = QuietOfFewPlaces(1'000, seed);
    ASSERT_GT(flooded.size(), 1'000u);
    const std::string name = "_" + std::to_string(seed);
    RecordProperty("few_ms" + name, std::to_string(Mean(few)));
    RecordProperty("flooded_ms" + name, std::to_string(Mean(flooded)));
    EXPECT_LE(Mean(flooded), 1.2 * Mean(few)) << seed;
    EXPECT_LE(Percentile95(flooded), 1.2 * Percentile95(few)) << seed;
  }
}

}  // namespace
}  // namespace tollgate::inference_router
