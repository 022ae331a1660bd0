#include "services/inference_router/balancer/health_checker.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/observability/log.h"
#include "services/inference_router/balancer/fetch_within.h"

namespace tollgate::inference_router {
namespace {

// Time for the head of the response, and of the whole check with its connection.
constexpr int64_t kCheckTimeoutMs = 2'000;
constexpr int64_t kCheckTotalMs = 4'000;
constexpr size_t kMaxBody = 1 << 20;

std::string_view HealthPath(catalog::v1::EngineKind kind) {
  switch (kind) {
    case catalog::v1::ENGINE_KIND_OLLAMA:
      return "/api/version";
    case catalog::v1::ENGINE_KIND_OPENAI:
      return "/v1/models";
    default:
      return "/health";
  }
}

}  // namespace

struct HealthChecker::Shared {
  Loop& loop;
  http::Client& client;
  TableSource table;
  int64_t interval_ms;
  Loop::TimerId timer = 0;
  bool stopped = false;

  static Task<void> Check(std::shared_ptr<Shared> shared, EnginePointer engine) {
    http::ClientRequest request;
    request.origin = engine->base().origin;
    request.target = engine->base().path + std::string(HealthPath(engine->engine().kind()));
    if (!engine->engine().api_key().empty()) {
      request.headers.emplace_back("authorization", "Bearer " + engine->engine().api_key());
    }
    request.head_timeout_ms = request.idle_timeout_ms = kCheckTimeoutMs;
    const int64_t now_us = SystemClock::Get().MonotonicUs();
    const bool was_up = engine->Healthy(now_us);
    auto answer = co_await FetchWithin(shared->loop, shared->client, std::move(request), kMaxBody,
                                       kCheckTotalMs);
    if (answer.ok() && answer->head.status < 500) {
      engine->OnSuccess();
      engine->NoteHealthCheck(SystemClock::Get().MonotonicUs() - now_us);
    } else {
      engine->NoteFailure(
          "health check: " + (answer.ok() ? "status " + std::to_string(answer->head.status)
                                          : answer.error().message),
          SystemClock::Get().WallUs());
      engine->OnHealthFailure(
          !answer.ok() && answer.error().kind == http::ClientError::Kind::kConnect,
          SystemClock::Get().MonotonicUs());
    }
    const bool is_up = engine->Healthy(SystemClock::Get().MonotonicUs());
    if (was_up != is_up) {
      if (is_up) {
        log::Info("engine is up", {{"engine", engine->id()}});
      } else {
        log::Warn("engine is down", {{"engine", engine->id()}});
      }
    }
  }

  static void Round(const std::shared_ptr<Shared>& shared) {
    std::shared_ptr<const RoutingTable> table = shared->table();
    if (table == nullptr) return;
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
                             int64_t interval_ms)
    : shared_(new Shared{loop, client, std::move(table), std::max<int64_t>(interval_ms, 100)}) {}

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
