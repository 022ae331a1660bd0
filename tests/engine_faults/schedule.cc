#include "tests/engine_faults/schedule.h"

#include <algorithm>
#include <csignal>

#include "tests/engine_faults/garbles.h"

namespace tollgate::test {
namespace {

constexpr int64_t kStepMs = 10;
constexpr int64_t kRestartMs = 10'000;  // bound until an engine listens again, on a loaded machine

}  // namespace

FaultSchedule::FaultSchedule(std::vector<std::unique_ptr<EngineProcess>>& engines, int64_t seed)
    : engines_(engines), states_(engines.size()), random_(static_cast<uint32_t>(seed)) {}

int64_t FaultSchedule::Between(int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random_() % static_cast<uint32_t>(most - least + 1));
}

void FaultSchedule::Kill(size_t engine, int64_t for_ms) {
  if (states_[engine].kind == Kind::kKilled) return;
  engines_[engine]->Kill();
  states_[engine] = {Kind::kKilled, MonotonicUs() + for_ms * 1000};
  ++counts_.kills;
}

void FaultSchedule::Garble(size_t engine) {
  std::vector<Json> scripts;
  for (int64_t left = Between(1, 4); left > 0; --left) {
    scripts.push_back(Garbles()[random_() % Garbles().size()]);
  }
  engines_[engine]->SetFaults(Between(25, 100), Between(0, 1'000'000), scripts);
  states_[engine] = {Kind::kScript, MonotonicUs() + Between(200, 2'500) * 1000};
  ++counts_.garbled;
}

void FaultSchedule::Begin(size_t engine) {
  const int64_t what = Between(0, 99);
  if (what < 20) return Kill(engine, Between(50, 2'500));
  if (what < 35) {
    engines_[engine]->Signal(SIGSTOP);
    states_[engine] = {Kind::kStopped, MonotonicUs() + Between(200, 5'000) * 1000};
    ++counts_.stops;
  } else if (what < 45) {
    Json slow = Json::Object();
    slow.Set("fault", "slow").Set("token_ms", Between(100, 400)).Set("delay_ms", Between(0, 2'500));
    engines_[engine]->SetFaults(100, 0, {slow});
    states_[engine] = {Kind::kScript, MonotonicUs() + Between(300, 2'500) * 1000};
    ++counts_.slow;
  } else if (what < 50) {
    const char* scripts[] = {R"({"health_status":500})", R"({"health_status":401})",
                             R"({"health_drip_ms":200})"};
    engines_[engine]->SetScript(scripts[Between(0, 2)]);
    states_[engine] = {Kind::kScript, MonotonicUs() + Between(500, 4'000) * 1000};
    ++counts_.unhealthy;
  } else {
    Garble(engine);
  }
}

void FaultSchedule::End(size_t engine) {
  switch (states_[engine].kind) {
    case Kind::kNone:
      return;
    case Kind::kKilled:
      engines_[engine]->Start();
      break;
    case Kind::kStopped:
      // Some engines hang until they are killed.
      if (Between(0, 4) == 0) return Kill(engine, Between(50, 1'000));
      engines_[engine]->Signal(SIGCONT);
      break;
    case Kind::kScript:
      engines_[engine]->SetFaults(0, 0, {});
      engines_[engine]->SetScript("{}");
      break;
  }
  states_[engine] = {};
}

void FaultSchedule::Run(int64_t milliseconds) {
  const int64_t end_us = MonotonicUs() + milliseconds * 1000;
  int64_t next_us = MonotonicUs();
  for (int64_t now_us = next_us; now_us < end_us; now_us = MonotonicUs()) {
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].kind != Kind::kNone && states_[i].until_us <= now_us) End(i);
    }
    if (next_us <= now_us) {
      next_us = now_us + Between(50, 400) * 1000;
      const size_t engine = random_() % engines_.size();
      if (Between(0, 99) == 0) {
        ++counts_.blackouts;
        for (size_t i = 0; i < engines_.size(); ++i) Kill(i, Between(300, 1'500));
      } else if (states_[engine].kind == Kind::kNone) {
        Begin(engine);
      }
    }
    SleepMs(kStepMs);
  }
}

bool FaultSchedule::Repair() {
  for (size_t i = 0; i < states_.size(); ++i) {
    while (states_[i].kind != Kind::kNone) End(i);
  }
  return std::all_of(engines_.begin(), engines_.end(), [](const auto& engine) {
    return WaitUntil([&] { return engine->Listens(); }, kRestartMs, 20);
  });
}

}  // namespace tollgate::test
