#include "tests/bench/ledger_load.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/money/money.h"

namespace tollgate::bench {

using billing::Authorize;
using billing::Operation;
using billing::Reply;
using billing::Settle;

namespace {

int64_t MonotonicUs() { return SystemClock::Get().MonotonicUs(); }

}  // namespace

LedgerMeasured LedgerLoad::Closed(int callers, double seconds) {
  closed_ = true;
  const int64_t begin_us = MonotonicUs();
  end_us_ = begin_us + static_cast<int64_t>(seconds * 1e6);
  for (int i = 0; i < callers; ++i) Begin(MonotonicUs());
  return Finish(begin_us);
}

LedgerMeasured LedgerLoad::Paced(int64_t rate, double seconds) {
  const int64_t begin_us = MonotonicUs();
  const int64_t count = static_cast<int64_t>(seconds * static_cast<double>(rate));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t due_us = begin_us + i * 1'000'000 / rate;
    if (const int64_t now_us = MonotonicUs(); now_us < due_us) {
      std::this_thread::sleep_for(std::chrono::microseconds(due_us - now_us));
    }
    Begin(due_us);
  }
  return Finish(begin_us);
}

void LedgerLoad::Begin(int64_t due_us) {
  static std::atomic<uint64_t> ids = 0;
  const uint64_t n = ++ids;
  ++running_;
  Authorize op;
  op.request_id = Id::Make(SystemClock::Get().WallUs() / 1000, 0, n);
  op.workspace = "bench-" + std::to_string(n % workspaces_);
  op.key_id = "key_0123456789abcdef_" + std::to_string(n / workspaces_ % kKeysOfWorkspace);
  op.model = "demo/model-large";
  op.rates = {1'000'000, 3'000'000};
  op.price_version = 3;
  op.prompt_bound = 900;
  op.output_bound = 500;
  op.surface = billing::Surface::kChatCompletions;
  op.streamed = true;
  op.client_request_id = "req_0123456789abcdef0123456789abcdef";
  Settle settle;
  settle.request_id = op.request_id;
  settle.workspace = op.workspace;
  settle.sequence = 1;
  settle.usage = {800, 200, 0, 300, 0};
  settle.outcome = billing::Outcome::kCompleted;
  settle.engine = "engine-1";
  settle.first_token_us = 120'000;
  ledger_.Submit({std::move(op)}, [this, due_us, settle = std::move(settle)](auto held) mutable {
    const int64_t held_us = MonotonicUs();
    if (!held.ok() || !held->front().ok) return Refused();
    authorize_.Add(mutex_, held_us - due_us);
    ledger_.Submit({std::move(settle)}, [this, held_us](auto settled) {
      if (!settled.ok() || !settled->front().ok) return Refused();
      const int64_t now_us = MonotonicUs();
      settle_.Add(mutex_, now_us - held_us);
      if (closed_ && now_us < end_us_) Begin(now_us);
      End();
    });
  });
}

void LedgerLoad::Refused() {
  ++refused_;
  End();
}

void LedgerLoad::End() {
  if (--running_ > 0) return;
  const std::lock_guard lock(mutex_);
  idle_.notify_all();
}

LedgerMeasured LedgerLoad::Finish(int64_t begin_us) {
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return running_ == 0; });
  }
  const double took = static_cast<double>(MonotonicUs() - begin_us) / 1e6;
  return {settle_.values.count(), took, refused_, std::move(authorize_.values),
          std::move(settle_.values)};
}

bool AddCredit(billing::LedgerService& ledger, int workspaces) {
  std::vector<Operation> operations;
  for (int w = 0; w < workspaces; ++w) {
    billing::AddCredit op;
    op.workspace = "bench-" + std::to_string(w);
    op.command_id = "credit";
    op.amount_nano_usd = 1'000'000 * kNanoPerUsd;
    op.actor = "bench";
    operations.emplace_back(std::move(op));
  }
  std::promise<bool> done;
  ledger.Submit(std::move(operations), [&](Result<std::vector<Reply>> replies) {
    const bool ok = replies.ok() && std::all_of(replies->begin(), replies->end(),
                                                [](const Reply& reply) { return reply.ok; });
    if (!ok) std::fprintf(stderr, "the credit was refused\n");
    done.set_value(ok);
  });
  return done.get_future().get();
}

}  // namespace tollgate::bench
