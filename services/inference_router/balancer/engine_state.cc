#include "services/inference_router/balancer/engine_state.h"

#include <algorithm>
#include <utility>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kFirstBackoffUs = 1'000'000;
constexpr int64_t kMaxBackoffUs = 15'000'000;
// Estimated work of a request of another process, in tokens: half of a usual answer, and its
// prompt's share.
constexpr int64_t kWorkOfOthers = 1'500;
constexpr double kFullCache = 0.97;
// An engine's share in thousandths: the whole, and the start of a slow start. A smaller start would
// admit less than one request for most of the ramp.
constexpr int64_t kWholeShare = 1'000;
constexpr int64_t kFirstShare = 100;

uint16_t NextNumber() {
  static std::atomic<uint32_t> last{0};
  return static_cast<uint16_t>(last.fetch_add(1, std::memory_order_relaxed) % 65'535 + 1);
}

}  // namespace

EngineState::EngineState(catalog::v1::Engine engine, http::BaseUrl base, int64_t slow_start_us,
                         bool remote)
    : engine_(std::move(engine)),
      base_(std::move(base)),
      number_(NextNumber()),
      slow_start_us_(slow_start_us),
      remote_(remote),
      weight_(engine_.has_weight() ? engine_.weight() : 1) {}

std::string_view EngineState::catalog_id() const {
  return std::string_view(id()).substr(0, id().find('@'));  // ids in the catalog contain no '@'
}

bool EngineState::TryEnter(int64_t work) {
  const int64_t limit = engine_.max_concurrency();
  int64_t running = running_.load(std::memory_order_relaxed);
  do {
    if (limit > 0 && running >= limit) return false;
  } while (!running_.compare_exchange_weak(running, running + 1, std::memory_order_relaxed));
  work_.fetch_add(work, std::memory_order_relaxed);
  return true;
}

void EngineState::Leave(int64_t work) {
  work_.fetch_sub(work, std::memory_order_relaxed);
  running_.fetch_sub(1, std::memory_order_relaxed);
}

bool EngineState::IsFull() const {
  const int64_t limit = engine_.max_concurrency();
  return limit > 0 && running() >= limit;
}

int64_t EngineState::Load(int64_t now_us) const {
  if (now_us >= reported_until_us_.load(std::memory_order_relaxed)) return work();
  const int64_t others = reported_requests_.load(std::memory_order_relaxed) - running();
  return work() + std::max<int64_t>(others, 0) * kWorkOfOthers;
}

bool EngineState::CacheIsFull(int64_t now_us) const {
  return now_us < reported_until_us_.load(std::memory_order_relaxed) &&
         reported_full_.load(std::memory_order_relaxed);
}

int64_t EngineState::Share(int64_t now_us) const {
  if (slow_start_us_ == 0) return weight() * kWholeShare;
  if (backoff_until_us_.load(std::memory_order_relaxed) != 0) return weight() * kFirstShare;
  const int64_t since_us = slow_since_us();
  if (since_us == 0 || now_us - since_us >= slow_start_us_) return weight() * kWholeShare;
  const int64_t part = std::max<int64_t>(now_us - since_us, 0) * kWholeShare / slow_start_us_;
  return weight() * std::max(part, kFirstShare);
}

void EngineState::SetDrained(bool drained, int64_t now_us) {
  if (drained == this->drained()) return;
  if (!drained) BeginSlowStart(now_us);
  drained_.store(drained, std::memory_order_relaxed);
}

bool EngineState::Available(int64_t now_us) const { return !drained() && Healthy(now_us); }

bool EngineState::Healthy(int64_t now_us) const {
  return down_since_us_.load(std::memory_order_relaxed) == 0 &&
         backoff_until_us_.load(std::memory_order_relaxed) <= now_us;
}

void EngineState::PauseUntil(int64_t until_us) {
  int64_t before = paused_until_us_.load(std::memory_order_relaxed);
  while (before < until_us &&
         !paused_until_us_.compare_exchange_weak(before, until_us, std::memory_order_relaxed)) {
  }
}

int64_t EngineState::PausedUs(int64_t now_us) const {
  return std::max<int64_t>(paused_until_us_.load(std::memory_order_relaxed) - now_us, 0);
}

int64_t EngineState::RetryAfterMs(int64_t now_us) const {
  const int64_t left_us = backoff_until_us_.load(std::memory_order_relaxed) - now_us;
  return std::clamp<int64_t>(left_us / 1000, 1000, kMaxBackoffUs / 1000);
}

void EngineState::OnConnectFailure(int64_t now_us) {
  const int failures = std::min(connect_failures_.fetch_add(1, std::memory_order_relaxed), 10);
  const int64_t backoff_us = std::min(kFirstBackoffUs << failures, kMaxBackoffUs);
  backoff_until_us_.store(now_us + backoff_us, std::memory_order_relaxed);
}

void EngineState::OnSuccess(int64_t now_us) {
  const bool was_away = down_since_us_.load(std::memory_order_relaxed) != 0 ||
                        backoff_until_us_.load(std::memory_order_relaxed) != 0;
  if (was_away) BeginSlowStart(now_us);  // before the engine is marked up
  connect_failures_.store(0, std::memory_order_relaxed);
  health_failures_.store(0, std::memory_order_relaxed);
  backoff_until_us_.store(0, std::memory_order_relaxed);
  down_since_us_.store(0, std::memory_order_relaxed);
}

void EngineState::OnHealthFailure(bool definite, int64_t now_us) {
  const int failures = health_failures_.fetch_add(1, std::memory_order_relaxed) + 1;
  int64_t up = 0;
  if (definite || failures >= 2) {
    down_since_us_.compare_exchange_strong(up, std::max<int64_t>(now_us, 1),
                                           std::memory_order_relaxed);
  }
}

void EngineState::NoteHealthCheck(int64_t took_us) {
  health_check_us_.store(std::max<int64_t>(took_us, 1), std::memory_order_relaxed);
}

void EngineState::NoteFirstOutput(int64_t took_us) {
  // Two concurrent requests may lose one of their values, which is acceptable for an average.
  const int64_t before = first_output_us_.load(std::memory_order_relaxed);
  const int64_t after = before == 0 ? took_us : before + (took_us - before) / 8;
  first_output_us_.store(std::max<int64_t>(after, 1), std::memory_order_relaxed);
}

void EngineState::NoteFailure(std::string text, int64_t wall_us) {
  const std::lock_guard lock(mutex_);
  failure_ = {std::move(text), wall_us};
}

EngineState::Failure EngineState::last_failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

EngineLoad EngineState::load() const {
  const std::lock_guard lock(mutex_);
  return load_;
}

void EngineState::NoteLoad(const EngineLoad& load) {
  const std::lock_guard lock(mutex_);
  load_ = load;
  reported_requests_.store(std::max<int64_t>(load.queued, 0) + std::max<int64_t>(load.running, 0),
                           std::memory_order_relaxed);
  reported_full_.store(load.cache_use >= kFullCache, std::memory_order_relaxed);
  reported_until_us_.store(load.fresh_until_us, std::memory_order_relaxed);
}

bool EngineState::HasQueue(int64_t now_us) const {
  const EngineLoad reported = load();
  return reported.Fresh(now_us) && reported.queued > 0;
}

int64_t EngineState::DownForUs(int64_t now_us) const {
  const int64_t since_us = down_since_us_.load(std::memory_order_relaxed);
  return since_us == 0 ? 0 : std::max<int64_t>(now_us - since_us, 1);
}

}  // namespace tollgate::inference_router
