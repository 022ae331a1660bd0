#include "services/inference_router/balancer/select_engine.h"

#include <algorithm>
#include <optional>

namespace tollgate::inference_router {
namespace {

// In a larger pool two engines are compared, picked at random by their shares. The better of two is
// nearly as good as the best, and routers with the same figures do not all select the same engine.
constexpr size_t kMostCompared = 8;
// An engine is preferred for its cache or for a session if its load is at most this many times the
// mean for its share…
constexpr double kBound = 1.25;
// … and if it may have cached at least this percentage of the prompt: a common line at the start of
// all prompts must not send them all to one engine. An engine that may have this much more of the
// prompt than the session's engine takes precedence over it, because a session name may stand for
// more than one conversation.
constexpr int64_t kLeastCachedPercent = 50;

struct Candidate {
  const EnginePointer* engine;
  int64_t load;
  int64_t share;
  int64_t cached = 0;  // bytes of the prompt
  bool cache_full;
  bool has_session = false;
};

struct Candidates {
  std::vector<Candidate> list;  // can take a request; all of one rank
  // Sums over all available engines of that rank.
  int64_t load = 0;
  int64_t share = 0;
  int64_t up = 0;  // available engines of all ranks
};

// Engines of a rank are used only while no engine of a lower rank can take a request: first engines
// of this zone with a weight, then others with a weight, then those with weight 0.
constexpr size_t kRanks = 4;
size_t RankOf(const EngineState& engine, int64_t share) {
  return (share > 0 ? 0 : 2) + (engine.remote() ? 1 : 0);
}

bool Holds(const std::vector<EnginePointer>& engines, const EnginePointer& engine) {
  return std::find(engines.begin(), engines.end(), engine) != engines.end();
}

void Find(const std::vector<EnginePointer>& engines, const std::vector<EnginePointer>& tried,
          int64_t now_us, uint64_t rotation, Candidates& found) {
  found.list.clear();
  int64_t load_of[kRanks] = {};
  int64_t share_of[kRanks] = {};
  size_t best = kRanks;
  for (size_t i = 0; i < engines.size(); ++i) {
    const EnginePointer& engine = engines[(i + rotation) % engines.size()];
    if (!engine->Available(now_us) || Holds(tried, engine)) continue;
    const int64_t load = engine->Load(now_us);
    const int64_t weighted = engine->Share(now_us);
    const size_t rank = RankOf(*engine, weighted);
    const int64_t share = std::max<int64_t>(weighted, 1);  // engines with weight 0 are equal
    ++found.up;
    load_of[rank] += load;
    share_of[rank] += share;
    if (rank > best || engine->PausedUs(now_us) > 0 || engine->IsFull()) continue;
    if (rank < best) found.list.clear();
    best = rank;
    found.list.push_back({.engine = &engine,
                          .load = load,
                          .share = share,
                          .cache_full = engine->CacheIsFull(now_us)});
  }
  if (best == kRanks) return;
  found.load = load_of[best];
  found.share = share_of[best];
}

// Finds the longest prefix that each engine was given, and the engine that had the session.
void FindKnown(const EngineNeed& need, int64_t now_us, Candidates& found) {
  if (need.prefixes == nullptr) return;
  if (need.session != 0) {
    need.prefixes->Find(need.session, now_us, [&](uint16_t number) {
      for (Candidate& candidate : found.list) {
        if ((*candidate.engine)->number() == number) candidate.has_session = true;
      }
    });
  }
  if (need.prefix == nullptr) return;
  const auto points = need.prefix->points();
  size_t without = found.list.size();
  for (auto point = points.rbegin(); point != points.rend() && without > 0; ++point) {
    need.prefixes->Find(point->hash, now_us, [&](uint16_t number) {
      for (Candidate& candidate : found.list) {
        if (candidate.cached > 0 || (*candidate.engine)->number() != number) continue;
        candidate.cached = point->bytes;
        --without;
      }
    });
  }
}

int64_t WorkAt(const Candidate& candidate, const EngineNeed& need) {
  int64_t prompt = need.work.prompt;
  if (candidate.cached > 0) {
    const int64_t bytes = std::max<int64_t>(need.prefix->bytes(), 1);
    prompt -=
        static_cast<int64_t>(static_cast<double>(prompt) * static_cast<double>(candidate.cached) /
                             static_cast<double>(bytes));
  }
  return prompt + need.work.output * kOutputWeight;
}

// Includes the request itself, so that the first request of an idle pool is always within the
// bound.
bool IsWithinBound(const Candidate& candidate, const EngineNeed& need, const Candidates& found) {
  const double mean = static_cast<double>(found.load) * static_cast<double>(candidate.share) /
                      static_cast<double>(found.share);
  return static_cast<double>(candidate.load) <=
         mean * kBound + static_cast<double>(WorkAt(candidate, need));
}

// Compares the work until the request is done in relation to the engine's share.
bool IsBetter(const Candidate& a, const Candidate& b, const EngineNeed& need) {
  if (a.cache_full != b.cache_full) return b.cache_full;
  return static_cast<double>(a.load + WorkAt(a, need)) / static_cast<double>(a.share) <
         static_cast<double>(b.load + WorkAt(b, need)) / static_cast<double>(b.share);
}

// Returns null if no engine has enough of the prompt, or if those that have it are too busy.
Candidate* BestCached(const EngineNeed& need, Candidates& found) {
  Candidate* best = nullptr;
  for (Candidate& candidate : found.list) {
    if (candidate.cached == 0 || candidate.cache_full) continue;
    if (candidate.cached * 100 < need.prefix->bytes() * kLeastCachedPercent) continue;
    if (!IsWithinBound(candidate, need, found)) continue;
    if (best == nullptr || candidate.cached > best->cached ||
        (candidate.cached == best->cached && IsBetter(candidate, *best, need))) {
      best = &candidate;
    }
  }
  return best;
}

// Returns null if there is none, if it is too busy, or if `cached` has much more of the prompt.
Candidate* OfSession(const EngineNeed& need, const Candidate* cached, Candidates& found) {
  for (Candidate& candidate : found.list) {
    if (!candidate.has_session || candidate.cache_full) continue;
    if (!IsWithinBound(candidate, need, found)) continue;
    if (cached != nullptr &&
        (cached->cached - candidate.cached) * 100 >= need.prefix->bytes() * kLeastCachedPercent) {
      continue;
    }
    return &candidate;
  }
  return nullptr;
}

uint64_t Scramble(uint64_t value) {
  value = (value + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
  value = (value ^ value >> 29) * 0x94d049bb133111eb;
  return value ^ value >> 32;
}

// Picks by share, skipping the candidate at `skipped`.
size_t PickAtRandom(const std::vector<Candidate>& list, uint64_t random, size_t skipped) {
  int64_t all = 0;
  for (size_t i = 0; i < list.size(); ++i) all += i == skipped ? 0 : list[i].share;
  auto at = static_cast<int64_t>(random % static_cast<uint64_t>(all));
  size_t picked = 0;
  for (size_t i = 0; i < list.size() && at >= 0; ++i) {
    if (i == skipped) continue;
    at -= list[i].share;
    picked = i;
  }
  return picked;
}

Candidate* LeastLoaded(const EngineNeed& need, uint64_t rotation, Candidates& found) {
  std::vector<Candidate>& list = found.list;
  if (list.size() > kMostCompared) {
    const uint64_t random = Scramble(rotation);
    const size_t first = PickAtRandom(list, random, list.size());
    const size_t second = PickAtRandom(list, Scramble(random), first);
    return IsBetter(list[second], list[first], need) ? &list[second] : &list[first];
  }
  Candidate* best = &list.front();
  for (Candidate& candidate : list) {
    if (IsBetter(candidate, *best, need)) best = &candidate;
  }
  return best;
}

void Remember(const EngineNeed& need, uint16_t engine, int64_t now_us) {
  if (need.prefixes == nullptr) return;
  if (need.session != 0) need.prefixes->Move(need.session, engine, now_us);
  if (need.prefix == nullptr) return;
  for (const auto& point : need.prefix->points()) need.prefixes->Add(point.hash, engine, now_us);
}

}  // namespace

int64_t PauseMs(const std::vector<EnginePointer>& engines, int64_t now_us) {
  int64_t first_us = INT64_MAX;
  for (const EnginePointer& engine : engines) {
    if (engine->Available(now_us)) first_us = std::min(first_us, engine->PausedUs(now_us));
  }
  return first_us == INT64_MAX ? 0 : (first_us + 999) / 1000;
}

Selection SelectEngine(const std::vector<EnginePointer>& engines,
                       const std::vector<EnginePointer>& tried, int64_t now_us, uint64_t rotation,
                       const EngineNeed& need) {
  thread_local Candidates found;  // reuses its memory
  found = {.list = std::move(found.list)};
  Find(engines, tried, now_us, rotation, found);
  const bool only = found.list.size() == 1;
  if (!only && !found.list.empty()) FindKnown(need, now_us, found);
  Selection selection;
  // Another thread may take the last place of an engine before TryEnter does. Then the next best
  // engine is used.
  while (!found.list.empty()) {
    Candidate* const cached = BestCached(need, found);
    Candidate* const session = OfSession(need, cached, found);
    Candidate* best = session != nullptr ? session : cached;
    selection.reason = only                 ? ChoiceReason::kOnly
                       : session != nullptr ? ChoiceReason::kSession
                       : cached != nullptr  ? ChoiceReason::kPrefix
                                            : ChoiceReason::kLoad;
    if (best == nullptr) best = LeastLoaded(need, rotation, found);
    const EnginePointer& engine = *best->engine;
    selection.work = WorkAt(*best, need);
    selection.outstanding = best->load;
    if (engine->TryEnter(selection.work)) {
      Remember(need, engine->number(), now_us);
      selection.engine = engine;
      return selection;
    }
    found.list.erase(found.list.begin() + (best - found.list.data()));
  }
  selection.no_engine = found.up > 0 ? NoEngine::kSaturated : NoEngine::kDown;
  selection.retry_after_ms = std::max<int64_t>(PauseMs(engines, now_us), 1000);
  if (found.up == 0 && !engines.empty()) {
    selection.retry_after_ms = INT64_MAX;
    for (const EnginePointer& engine : engines) {
      selection.retry_after_ms = std::min(selection.retry_after_ms, engine->RetryAfterMs(now_us));
    }
  }
  return selection;
}

}  // namespace tollgate::inference_router
