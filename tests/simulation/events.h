// Virtual time and randomness: events in the order of their time, from one seed.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

namespace tollgate::simulation {

// In microseconds.
inline constexpr int64_t kMs = 1'000, kSecond = 1'000'000;

class Events {
 public:
  explicit Events(uint64_t seed) : random_(seed) {}

  int64_t now_us() const { return now_us_; }
  void After(int64_t delay_us, std::function<void()> run) {
    queue_.push({now_us_ + delay_us, next_++, std::move(run)});
  }
  // Runs the events that are due until then.
  void RunUntil(int64_t end_us) {
    while (!queue_.empty() && queue_.top().at_us <= end_us) {
      // std::priority_queue cannot move its first element out.
      Event event = std::move(const_cast<Event&>(queue_.top()));
      queue_.pop();
      now_us_ = event.at_us;
      event.run();
    }
    now_us_ = end_us;
  }

  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(bound));
  }
  int64_t Between(int64_t least, int64_t most) { return least + Below(most - least + 1); }
  bool OneIn(int64_t times) { return Below(times) == 0; }

 private:
  struct Event {
    int64_t at_us;
    uint64_t number;  // events of the same time run in the order in which they were made
    std::function<void()> run;
    bool operator<(const Event& other) const {
      return at_us != other.at_us ? at_us > other.at_us : number > other.number;
    }
  };
  std::mt19937_64 random_;
  int64_t now_us_ = 0;
  uint64_t next_ = 0;
  std::priority_queue<Event> queue_;
};

}  // namespace tollgate::simulation
