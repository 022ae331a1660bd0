#include "services/inference_router/balancer/health_checker.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/base/clock.h"
#include "common/engines/kinds.h"
#include "common/observability/log.h"
#include "services/inference_router/balancer/fetch_within.h"

namespace tollgate::inference_router {
namespace {

constexpr size_t kMaxBody = 1 << 20;
// vLLM's metrics are about 100 KiB per model.
constexpr size_t kMaxMetrics = 4 << 20;
// Number of rounds for which a load is valid, so that a late or lost report has no effect.
constexpr int64_t kRoundsFresh = 3;
// Time after which an engine without load metrics is asked for them again.
constexpr int64_t kNoLoadUs = 60'000'000;

// Returns the problem for operators, or empty text for a healthy engine. An engine that does not
// know the path is healthy, because some proxies do not pass the path on. An engine that refuses
// the catalog's credential is unhealthy, because it would refuse every request (decision 22).
std::string Judge(const http::ClientResult<http::WholeResponse>& answer) {
  if (!answer.ok()) return answer.error().message;
  const int status = answer->head.status;
  const std::string text = "status " + std::to_string(status);
  if (status == 401 || status == 403) {
    return text + ", the engine refuses the api_key of the catalog";
  }
  return status < 500 ? "" : text;
}

}  // namespace

struct HealthChecker::Shared {
  Loop& loop;
  http::Client& client;
  TableSource table;
  int64_t interval_ms;
  int64_t timeout_ms;
  Loop::TimerId timer = 0;
  bool stopped = false;
  // By engine id: monotonic time (µs) until which the engine is not asked for its load.
  std::unordered_map<std::string, int64_t> no_load_until_us;

  http::ClientRequest Get(const EngineState& engine, std::string_view path) const {
    http::ClientRequest request;
    request.origin = engine.base().origin;
    request.target = engine.base().path + std::string(path);
    if (!engine.engine().api_key().empty()) {
      request.headers.emplace_back("authorization", "Bearer " + engine.engine().api_key());
    }
    request.head_timeout_ms = request.idle_timeout_ms = timeout_ms / 2;
    return request;
  }

  // A missing load does not count as a failure of the engine.
  static Task<void> ReadLoadOf(std::shared_ptr<Shared> shared, EnginePointer engine) {
    const catalog::v1::EngineKind kind = engine->engine().kind();
    const int64_t now_us = SystemClock::Get().MonotonicUs();
    if (!engines::Of(kind).load.any() || shared->no_load_until_us[engine->id()] > now_us) co_return;
    auto answer =
        co_await FetchWithin(shared->loop, shared->client, shared->Get(*engine, "/metrics"),
                             kMaxMetrics, shared->timeout_ms);
    if (!answer.ok()) co_return;
    auto load = answer->head.status == 200 ? ReadLoad(kind, answer->body) : std::nullopt;
    if (!load) {
      shared->no_load_until_us[engine->id()] = now_us + kNoLoadUs;
      co_return;
    }
    load->fresh_until_us =
        SystemClock::Get().MonotonicUs() + kRoundsFresh * shared->interval_ms * 1000;
    engine->NoteLoad(*load);
  }

  static Task<void> Check(std::shared_ptr<Shared> shared, EnginePointer engine) {
    const int64_t now_us = SystemClock::Get().MonotonicUs();
    const bool was_up = engine->Healthy(now_us);
    auto answer =
        co_await FetchWithin(shared->loop, shared->client,
                             shared->Get(*engine, engines::Of(engine->engine().kind()).health_path),
                             kMaxBody, shared->timeout_ms);
    const std::string wrong = Judge(answer);
    if (wrong.empty()) {
      const int64_t answered_us = SystemClock::Get().MonotonicUs();
      engine->OnSuccess(answered_us);
      engine->NoteHealthCheck(answered_us - now_us);
    } else {
      engine->NoteFailure("health check: " + wrong, SystemClock::Get().WallUs());
      engine->OnHealthFailure(
          !answer.ok() && answer.error().kind == http::ClientError::Kind::kConnect,
          SystemClock::Get().MonotonicUs());
    }
    const bool is_up = engine->Healthy(SystemClock::Get().MonotonicUs());
    if (was_up != is_up) {
      if (is_up) {
        log::Info("engine is up", {{"engine", engine->id()}});
      } else {
        log::Warn("engine is down", {{"engine", engine->id()}, {"reason", wrong}});
      }
    }
    if (is_up) co_await ReadLoadOf(shared, engine);
  }

  static void Round(const std::shared_ptr<Shared>& shared) {
    std::shared_ptr<const RoutingTable> table = shared->table();
    if (table == nullptr) return;
    if (shared->no_load_until_us.size() > 2 * table->engines().size()) {
      shared->no_load_until_us.clear();  // drops entries of engines that left the catalog
    }
    for (const EnginePointer& engine : table->engines()) shared->loop.Spawn(Check(shared, engine));
  }

  static void Plan(const std::shared_ptr<Shared>& shared) {
    shared->timer = shared->loop.RunAfter(shared->interval_ms, [shared] {
      if (shared->stopped) return;
      Round(shared);
      Plan(shared);
    });
  }
};

HealthChecker::HealthChecker(Loop& loop, http::Client& client, TableSource table,
                             int64_t interval_ms, int64_t timeout_ms)
    : shared_(new Shared{loop, client, std::move(table), std::max<int64_t>(interval_ms, 100),
                         timeout_ms}) {}

HealthChecker::~HealthChecker() {
  shared_->stopped = true;
  shared_->loop.CancelTimer(shared_->timer);
}

void HealthChecker::Start() {
  Shared::Round(shared_);
  Shared::Plan(shared_);
}

void HealthChecker::CheckNow() { Shared::Round(shared_); }

}  // namespace tollgate::inference_router
