// Selections for eight simulated engines, each with a prefix cache, in simulated time: how much of
// the prompts is found in the caches, compared with one engine that has all the memory, and how
// evenly the work is spread (ADR 0029). The figures are in docs/performance.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "services/inference_router/balancer/select_engine.h"

namespace tollgate::inference_router {
namespace {

constexpr int kEngines = 8;
constexpr int kRequests = 5'000;
constexpr int64_t kBytesPerToken = 4;
constexpr size_t kBlockBytes = 256;
// Cache of one engine, in blocks: a third of what the workload uses at a time.
constexpr size_t kCacheBlocks = 2'500;
// An engine reads 8,000 prompt tokens per second and writes each answer at 50 per second.
constexpr int64_t kPromptTokenUs = 125;
constexpr int64_t kOutputTokenUs = 20'000;
// Mean pause between requests; about 12 run on an engine at a time.
constexpr int64_t kBusyPauseUs = 36'000;

std::string RandomText(uint64_t seed, size_t bytes) {
  std::minstd_rand random(static_cast<uint32_t>(seed * 2 + 1));
  std::string text(bytes, ' ');
  for (size_t i = 0; i < bytes; i += 2) text[i] = static_cast<char>('a' + random() % 26);
  return text;
}

// Keeps the most recently used blocks.
class CacheModel {
 public:
  explicit CacheModel(size_t blocks) : blocks_(blocks) {}
  // Returns how many bytes of the prompt were cached, counted from its start.
  int64_t Read(const std::string& prompt) {
    int64_t cached = 0;
    bool all = true;
    uint64_t key = 0;
    for (size_t at = 0; at + kBlockBytes <= prompt.size(); at += kBlockBytes) {
      key = HashBytes(key, std::string_view(prompt).substr(at, kBlockBytes));
      all = Use(key) && all;
      if (all) cached += kBlockBytes;
    }
    return cached;
  }

 private:
  bool Use(uint64_t key) {
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return true;
    }
    order_.push_front(key);
    by_key_[key] = order_.begin();
    if (order_.size() > blocks_) {
      by_key_.erase(order_.back());
      order_.pop_back();
    }
    return false;
  }
  const size_t blocks_;
  std::list<uint64_t> order_;
  std::unordered_map<uint64_t, std::list<uint64_t>::iterator> by_key_;
};

// Conversations that begin with one of 60 system prompts and grow with each turn. A tenth of the
// requests has nothing in common with any other. skew: with 1, a fifth of the conversations begins
// with the most popular system prompt; with 2, three fifths.
class Workload {
 public:
  Workload(uint32_t seed, double skew) : random_(seed) {
    double sum = 0;
    for (int i = 0; i < kGroups; ++i) {
      systems_.push_back(RandomText(1'000 + i, 2'000 + Below(6'000)));
      popularity_.push_back(sum += std::pow(i + 1, -skew));
    }
    for (int i = 0; i < kConversations; ++i) conversations_.push_back(New());
  }
  std::string Next() {
    if (Below(10) == 0) return RandomText(++texts_, 2'000 + Below(6'000));
    std::string& conversation = conversations_[Below(kConversations)];
    conversation += RandomText(++texts_, 100 + Below(500));
    std::string prompt = conversation;
    conversation += RandomText(++texts_, 200 + Below(1'000));  // the answer
    if (Below(6) == 0) conversation = New();
    return prompt;
  }
  int64_t Output() { return 20 + Below(300); }
  int64_t PauseUs(int64_t mean_us) {
    return static_cast<int64_t>(std::exponential_distribution<double>(1.0)(random_) *
                                static_cast<double>(mean_us));
  }

 private:
  static constexpr int kGroups = 60;
  static constexpr int kConversations = 400;
  int64_t Below(int64_t bound) { return static_cast<int64_t>(random_() % bound); }
  std::string New() {
    const double at = popularity_.back() * static_cast<double>(random_()) / 4294967296.0;
    const auto group = std::upper_bound(popularity_.begin(), popularity_.end(), at);
    return systems_[static_cast<size_t>(group - popularity_.begin())];
  }
  std::mt19937 random_;
  uint64_t texts_ = 1'000'000;
  std::vector<std::string> systems_;
  std::vector<double> popularity_;
  std::vector<std::string> conversations_;
};

struct Figures {
  double hit_rate = 0;        // share of the prompts' bytes
  double ideal_hit_rate = 0;  // for one engine with the memory of all
  double most_work = 0;       // work of the busiest engine over the mean: tokens done
  double most_waiting = 0;    // the same for outstanding work, as a mean over time
};

class Simulation {
 public:
  explicit Simulation(bool prefixes) : prefixes_(prefixes) {
    for (int i = 0; i < kEngines; ++i) {
      engines_.push_back(std::make_shared<EngineState>(catalog::v1::Engine(), http::BaseUrl()));
      caches_.emplace_back(kCacheBlocks);
    }
  }
  Figures Run(uint32_t seed, double skew = 1, int requests = kRequests) {
    Workload workload(seed, skew);
    for (int i = 0; i < requests; ++i) {
      AdvanceTo(now_us_ + workload.PauseUs(kBusyPauseUs));
      Ask(workload.Next(), workload.Output(), static_cast<uint64_t>(i));
    }
    AdvanceTo(INT64_MAX);
    Figures figures;
    figures.hit_rate = static_cast<double>(hit_) / static_cast<double>(read_);
    figures.ideal_hit_rate = static_cast<double>(ideal_hit_) / static_cast<double>(read_);
    figures.most_work = OverMean(done_);
    figures.most_waiting = OverMean(waiting_);
    for (const auto& engine : engines_) EXPECT_EQ(engine->work(), 0);
    return figures;
  }

 private:
  struct Running {
    WorkMeter meter;
    int64_t next_us = 0;
    int64_t tokens = 0;
    int64_t output = 0;
  };
  using Step = std::pair<int64_t, std::shared_ptr<Running>>;
  struct Later {
    bool operator()(const Step& a, const Step& b) const { return a.first > b.first; }
  };
  static double OverMean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return *std::max_element(values.begin(), values.end()) * kEngines / sum;
  }

  void Ask(const std::string& prompt, int64_t output, uint64_t number) {
    const PrefixChain chain(7, prompt);
    const auto bytes = static_cast<int64_t>(prompt.size());
    EngineNeed need{.work = {.prompt = bytes / kBytesPerToken, .output = 150}};
    if (prefixes_) {
      need.prefix = &chain;
      need.prefixes = &table_;
    }
    Selection selection = SelectEngine(engines_, {}, now_us_, number, need);
    ASSERT_NE(selection.engine, nullptr);
    const auto engine = static_cast<size_t>(
        std::find(engines_.begin(), engines_.end(), selection.engine) - engines_.begin());
    const int64_t cached = caches_[engine].Read(prompt);
    read_ += bytes;
    hit_ += cached;
    ideal_hit_ += ideal_.Read(prompt);
    const int64_t to_read = (bytes - cached) / kBytesPerToken;
    done_[engine] += static_cast<double>(to_read + output * kOutputWeight);
    prompt_free_us_[engine] = std::max(prompt_free_us_[engine], now_us_) + to_read * kPromptTokenUs;
    auto running = std::make_shared<Running>();
    running->meter.Enter(selection.engine, selection.work, need.work.output);
    running->output = output;
    steps_.push({prompt_free_us_[engine] + kOutputTokenUs, running});
  }
  void AdvanceTo(int64_t until_us) {
    while (!steps_.empty() && steps_.top().first <= until_us) {
      const auto [at_us, running] = steps_.top();
      steps_.pop();
      Pass(at_us);
      const int64_t more =
          std::min<int64_t>(running->tokens == 0 ? 1 : 16, running->output - running->tokens);
      running->tokens += more;
      running->meter.OnOutput(running->tokens);
      if (running->tokens < running->output) {
        steps_.push({at_us + 16 * kOutputTokenUs, running});
      } else {
        running->meter.Leave();
      }
    }
    if (until_us != INT64_MAX) Pass(until_us);
  }
  void Pass(int64_t at_us) {
    for (size_t i = 0; i < engines_.size(); ++i) {
      waiting_[i] +=
          static_cast<double>(engines_[i]->work()) * static_cast<double>(at_us - now_us_);
    }
    now_us_ = at_us;
  }

  const bool prefixes_;
  std::vector<EnginePointer> engines_;
  PrefixTable table_{kEngines};
  std::vector<CacheModel> caches_;
  CacheModel ideal_{kCacheBlocks * kEngines};
  std::priority_queue<Step, std::vector<Step>, Later> steps_;
  int64_t now_us_ = 1'000'000;
  std::vector<int64_t> prompt_free_us_ = std::vector<int64_t>(kEngines);
  std::vector<double> done_ = std::vector<double>(kEngines);
  std::vector<double> waiting_ = std::vector<double>(kEngines);
  int64_t read_ = 0, hit_ = 0, ideal_hit_ = 0;
};

TEST(SelectEnginePrefixes, TheHitRateIsWithinFivePercentOfOneEngineAndNoEngineIsAboveItsShare) {
  const std::pair<uint32_t, double> workloads[] = {{1, 1}, {2, 2}};
  for (const auto& [seed, skew] : workloads) {
    const Figures figures = Simulation(true).Run(seed, skew);
    const std::string name = "_" + std::to_string(seed);
    RecordProperty("hit_rate" + name, std::to_string(figures.hit_rate));
    RecordProperty("ideal" + name, std::to_string(figures.ideal_hit_rate));
    RecordProperty("most_work" + name, std::to_string(figures.most_work));
    RecordProperty("most_waiting" + name, std::to_string(figures.most_waiting));
    EXPECT_GT(figures.ideal_hit_rate, 0.6) << "there is something to find";
    EXPECT_GE(figures.hit_rate, figures.ideal_hit_rate * 0.95) << seed;
    EXPECT_LE(figures.most_work, 1.25) << seed;
    EXPECT_LE(figures.most_waiting, 1.25) << seed;
  }
}

TEST(SelectEnginePrefixes, WithoutPrefixesMostOfItIsLost) {
  const Figures figures = Simulation(false).Run(1);
  RecordProperty("hit_rate", std::to_string(figures.hit_rate));
  EXPECT_LT(figures.hit_rate, figures.ideal_hit_rate * 0.8) << "the caches are too small for all";
}

TEST(SelectEnginePrefixes, TheSameSeedGivesTheSameChoices) {
  const Figures first = Simulation(true).Run(4, 1, 1'000);
  const Figures second = Simulation(true).Run(4, 1, 1'000);
  EXPECT_EQ(first.hit_rate, second.hit_rate);
  EXPECT_EQ(first.most_work, second.most_work);
}

}  // namespace
}  // namespace tollgate::inference_router
