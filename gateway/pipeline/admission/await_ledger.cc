#include "gateway/pipeline/admission/await_ledger.h"

#include <algorithm>
#include <iterator>

#include "common/clients/backoff.h"
#include "common/observability/metrics.h"
#include "gateway/pipeline/admission/authorize_item.h"

namespace tollgate::gateway {

namespace {

// Milliseconds until a request gives up, from its first attempt, and milliseconds per attempt.
constexpr int64_t kPatience = 3'000;
constexpr int64_t kAttemptTimeout = 1'000;

// Size of the waiting request in the form that engines get. A request that a router has returned is
// kept in `movable`.
int64_t BytesOf(const RequestContext& context) {
  return static_cast<int64_t>(context.movable ? context.movable->members_json().size()
                                              : context.canonical.members_json.size());
}

}  // namespace

bool IsUnreachable(const Result<billing::v1::AuthorizeResult>& answer) {
  return !answer && answer.error().id == ErrorId::kServiceUnavailable;
}

bool IsReloading(const Result<billing::v1::AuthorizeResult>& answer) {
  return answer && answer->reloading();
}

Task<Result<billing::v1::AuthorizeResult>> AuthorizeOnce(RequestContext& context) {
  return context.worker.clients.billing->Authorize(MakeAuthorizeItem(context), kAttemptTimeout);
}

LedgerWaiters::LedgerWaiters()
    : gauge_(metrics::Gauge(
          "tollgate_gateway_ledger_waiters",
          "Admissions that are waiting for an unreachable ledger, or for the credit of a "
          "charge of auto-reload that is under way.")) {
  const char* const kEnds[] = {"answered", "late", "left", "refused"};
  for (size_t i = 0; i < std::size(kEnds); ++i) {
    ends_[i] = &metrics::Counter(
        "tollgate_gateway_ledger_waits_total",
        "Admissions that met an unreachable ledger, or lacked credit while a charge of auto-reload "
        "was under way, by result: answered, late (503 or 429 after 3 s), left (the caller "
        "disconnected), refused (503 or 429 immediately because too many were waiting).",
        {{"result", kEnds[i]}});
  }
}

LedgerWaiters& LedgerWaiters::Get() {
  static LedgerWaiters waiters;
  return waiters;
}

std::optional<LedgerWaiters::Place> LedgerWaiters::Enter(int64_t bytes) {
  const int64_t requests = ++requests_;
  const int64_t total = bytes_ += bytes;
  if (requests > kMaxRequests || total > kMaxBytes) {
    --requests_;
    bytes_ -= bytes;
    return std::nullopt;
  }
  gauge_.Increment();
  return Place(*this, bytes);
}

void LedgerWaiters::Leave(int64_t bytes) {
  --requests_;
  bytes_ -= bytes;
  gauge_.Decrement();
}

Task<Result<billing::v1::AuthorizeResult>> AuthorizeOrWait(RequestContext& context) {
  // Uses real time because Sleep does.
  const Clock& clock = SystemClock::Get();
  const int64_t deadline_us = clock.MonotonicUs() + kPatience * 1000;
  Backoff backoff(50, 400);
  LedgerWaiters& waiters = LedgerWaiters::Get();
  std::optional<LedgerWaiters::Place> place;
  for (int64_t left_ms = kPatience;;) {
    auto answer = co_await context.worker.clients.billing->Authorize(
        MakeAuthorizeItem(context), std::min(left_ms, kAttemptTimeout));
    if (!IsUnreachable(answer) && !IsReloading(answer)) {
      if (place) waiters.Count(LedgerWaiters::End::kAnswered);
      co_return answer;
    }
    const int64_t wait_ms = backoff.NextMs();
    left_ms = (deadline_us - clock.MonotonicUs()) / 1000 - wait_ms;
    if (left_ms <= 0) {
      waiters.Count(LedgerWaiters::End::kLate);
      co_return answer;
    }
    if (!place) {
      auto entered = waiters.Enter(BytesOf(context));
      if (!entered) {
        waiters.Count(LedgerWaiters::End::kRefused);
        co_return answer;
      }
      place.emplace(std::move(*entered));
    }
    if (!context.exchange.disconnected()) co_await context.worker.loop.Sleep(wait_ms);
    if (context.exchange.disconnected()) {
      waiters.Count(LedgerWaiters::End::kLeft);
      co_return answer;
    }
  }
}

}  // namespace tollgate::gateway
