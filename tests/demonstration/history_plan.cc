#include "tests/demonstration/history_plan.h"
#include "common/base/time_units.h"

#include <algorithm>
#include <array>
#include <random>

namespace tollgate::demonstration {

using billing::Outcome;
using billing::Surface;

namespace {

// Shorter than the time after which the ledger ends a hold without a heartbeat.
constexpr int64_t kLongestUs = 50 * kSecondUs;
// The afternoon on which engine 2 failed.
constexpr int kBadDay = 18;
constexpr int64_t kBadFromUs = 13 * kHourUs;
constexpr int64_t kBadUntilUs = kBadFromUs + 40 * kMinuteUs;

// Distributions of the standard library differ between implementations; this one does not.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  uint64_t Bits() { return engine_(); }
  int64_t Below(int64_t end) {
    return static_cast<int64_t>(engine_() % static_cast<uint64_t>(end));
  }
  bool Percent(int percent) { return Below(100) < percent; }
  // A value near the middle, at most three times as large.
  int64_t About(int64_t middle) {
    const int64_t part = 25 + Below(60) + Below(60) + (Percent(8) ? Below(150) : 0);
    return std::max<int64_t>(1, middle * part / 85);
  }

 private:
  std::mt19937_64 engine_;
};

// How busy each hour is, in percent of the busiest.
constexpr std::array<int, 24> kOfficeHours = {1,  0,  0,  0,  1,  3,  12, 38, 72, 95, 100, 88,
                                              52, 78, 97, 92, 70, 41, 18, 9,  6,  4,  3,   2};
constexpr std::array<int, 24> kAllHours = {22, 16, 12, 10, 12, 20,  34, 52, 68, 80, 88, 90,
                                           86, 88, 92, 96, 98, 100, 98, 90, 76, 60, 44, 30};
constexpr std::array<int, 24> kNights = {0, 0, 100, 60, 0, 0, 0, 0, 0, 0, 0, 0,
                                         0, 0, 0,   0,  0, 0, 0, 0, 0, 0, 0, 0};

const std::array<int, 24>& HoursOf(Rhythm rhythm) {
  switch (rhythm) {
    case Rhythm::kOffice:
      return kOfficeHours;
    case Rhythm::kNightly:
      return kNights;
    default:
      return kAllHours;
  }
}

// 1970-01-01 was a Thursday.
bool IsWeekend(int64_t day_us) {
  const int64_t weekday = (day_us / kDayUs + 4) % 7;
  return weekday == 0 || weekday == 6;
}

int64_t TimeOfDay(Dice& dice, Rhythm rhythm) {
  const auto& hours = HoursOf(rhythm);
  while (true) {
    const int64_t at = dice.Below(kDayUs);
    if (dice.Below(100) < hours[static_cast<size_t>(at / kHourUs)]) return at;
  }
}

int CountOfDay(Dice& dice, const PlannedKey& key, int day, bool weekend) {
  if (day < key.first_day || (key.end_day >= 0 && day >= key.end_day)) return 0;
  int64_t count = key.per_day;
  if (weekend) count = key.rhythm == Rhythm::kOffice ? count / 9 : count * 3 / 5;
  // Use grows over the month and varies by day.
  count = count * (80 + day * 4 / 3) / 100;
  return static_cast<int>(count * (85 + dice.Below(31)) / 100);
}

void DecideOutcome(Dice& dice, int day, int64_t time_us, PlannedRequest& request) {
  const bool bad = day == kBadDay && time_us >= kBadFromUs && time_us < kBadUntilUs;
  const int64_t luck = dice.Below(1000);
  if (bad && request.engine == 2) {
    request.outcome = luck < 550   ? Outcome::kFailedBeforeOutput
                      : luck < 800 ? Outcome::kFailedMidStream
                                   : Outcome::kCompleted;
  } else if (luck < 6) {
    request.outcome = Outcome::kFailedBeforeOutput;
  } else if (luck < 9) {
    request.outcome = Outcome::kFailedMidStream;
  } else if (luck < 36) {
    request.outcome = Outcome::kClientGone;
  }
}

PlannedRequest Make(Dice& dice, size_t index, int day, int64_t day_us, int64_t time_us) {
  const PlannedKey& key = Keys()[index];
  PlannedRequest request;
  request.key = index;
  request.admitted_us = day_us + time_us;
  request.engine = dice.Percent(50) ? 1 : 2;
  request.random_high = dice.Bits();
  request.random_low = dice.Bits();
  billing::Usage& usage = request.usage;
  usage.prompt = dice.About(key.prompt_tokens);
  if (key.cached_percent > 0 && dice.Percent(85)) {
    usage.cached = usage.prompt * (key.cached_percent - 10 + dice.Below(20)) / 100;
  }
  int64_t output = std::min<int64_t>(dice.About(key.output_tokens), 2500);
  request.prompt_bound = usage.prompt + usage.prompt / 8 + 16;
  request.output_bound = std::max<int64_t>(1024, output);
  DecideOutcome(dice, day, time_us, request);
  if (request.outcome == Outcome::kFailedBeforeOutput) {
    usage = {};
    request.closed_us = request.admitted_us + 200'000 + dice.Below(2 * kSecondUs);
    return request;
  }
  if (request.outcome != Outcome::kCompleted) output = 1 + dice.Below(output);
  usage.completion = output;
  usage.reasoning = output * key.reasoning_percent / 100;
  request.first_token_us = 110'000 + usage.prompt * 9 + dice.Below(120'000);
  // 60 tokens a second, like the simulated engines.
  const int64_t took = request.first_token_us + output * kSecondUs / (54 + dice.Below(12));
  request.closed_us = request.admitted_us + std::min(took, kLongestUs);
  return request;
}

}  // namespace

const std::vector<PlannedKey>& Keys() {
  static const std::vector<PlannedKey> keys = {
      {"support-chat", "", Rhythm::kAlways, Surface::kChatCompletions, true, false, 34, 1900, 260,
       20, 15, 0, -1},
      {"coding-agents", "25", Rhythm::kOffice, Surface::kMessages, true, false, 26, 21'000, 780, 75,
       30, 0, -1},
      {"nightly-summaries", "", Rhythm::kNightly, Surface::kResponses, false, true, 24, 6400, 520,
       0, 10, 2, -1},
      {"website-search", "5", Rhythm::kAlways, Surface::kChatCompletions, true, true, 38, 700, 110,
       0, 0, 0, -1},
      {"evaluation", "", Rhythm::kOffice, Surface::kChatCompletions, false, false, 22, 3100, 640, 0,
       40, 6, 20},
  };
  return keys;
}

std::vector<PlannedRequest> PlanRequests(uint64_t seed, int64_t start_us, int64_t end_us) {
  Dice dice(seed);
  std::vector<PlannedRequest> requests;
  int day = 0;
  for (int64_t day_us = start_us; day_us < end_us; day_us += kDayUs, ++day) {
    for (size_t index = 0; index < Keys().size(); ++index) {
      const PlannedKey& key = Keys()[index];
      const int count = CountOfDay(dice, key, day, IsWeekend(day_us));
      for (int n = 0; n < count; ++n) {
        PlannedRequest request = Make(dice, index, day, day_us, TimeOfDay(dice, key.rhythm));
        if (request.closed_us < end_us) requests.push_back(request);
      }
    }
  }
  std::ranges::sort(requests, {}, [](const PlannedRequest& request) {
    return std::pair(request.admitted_us, request.random_low);
  });
  return requests;
}

}  // namespace tollgate::demonstration
