// What the requests of one event loop share: clients, caches, settings. Only that loop's thread
// uses it, so nothing is locked. Members shared by all loops of the process say so.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/runtime/loop.h"
#include "common/runtime/thread_pool.h"
#include "gateway/worker/catalog_view.h"
#include "gateway/worker/clock_check.h"
#include "gateway/worker/key_cache.h"
#include "gateway/worker/key_use.h"
#include "gateway/worker/keyed_queue.h"
#include "gateway/worker/leased_workspaces.h"
#include "gateway/worker/limiter_presence.h"
#include "gateway/worker/local_limiter.h"
#include "gateway/worker/metrics.h"
#include "gateway/worker/reasoning_keys.h"
#include "gateway/worker/refusal_budget.h"
#include "gateway/worker/slot.h"

namespace tollgate::gateway {

struct PipelineOptions {
  std::string brand = "tollgate";
  std::vector<std::string> legacy_key_prefixes;
  bool refuse_large_max_tokens = false;
  // Limit on a decoded body. The HTTP server limits the received bytes.
  size_t max_body_bytes = 16 << 20;
  // Hosts of media URLs, in lower case, as in GatewaySettings; empty: every host.
  std::vector<std::string> media_hosts;
  int64_t keep_alive_ms = 15'000;
  // Public ids of the keys that may see which engine answered (GatewaySettings.debug_keys).
  std::vector<std::string> debug_keys;
  // Key that seals the answers kept for repetitions (seal.h); empty: none are kept.
  std::string answer_key;
  // Null: reasoning is never sealed.
  std::shared_ptr<const ReasoningKeys> reasoning_keys;
  // Limit on the event bytes of one answer that is not streamed to the client. It is above the
  // router's own limit (H75), so only a router that violates its limit reaches it.
  int64_t max_collected_bytes = 256 << 20;
  // Event loops of this process, which divide the local limits.
  int loops = 1;
};

struct WorkerClients {
  std::unique_ptr<AuthClient> auth;
  std::unique_ptr<RateLimitClient> limiter;
  std::unique_ptr<BillingClient> billing;
  std::unique_ptr<InferenceClient> inference;
};

struct Worker {
  // The workers of the process share unknown_key_limiter, decoder_threads, refusal_budget and
  // process_clock.
  Worker(Loop& event_loop, const Clock& time, PipelineOptions pipeline_options,
         WorkerClients service_clients, std::shared_ptr<AddressLimiter> unknown_key_limiter,
         std::shared_ptr<ThreadPool> decoder_threads, std::shared_ptr<RefusalBudget> refusal_budget,
         std::shared_ptr<ClockCheck> process_clock)
      : loop(event_loop),
        clock(time),
        options(std::move(pipeline_options)),
        clients(std::move(service_clients)),
        keys(std::make_shared<KeyCache>(loop, clock, *clients.auth, std::move(unknown_key_limiter),
                                        options.loops)),
        key_use(std::make_shared<KeyUseReporter>(loop, clock, *clients.auth)),
        slots(std::make_shared<SlotKeeper>(loop, *clients.limiter)),
        presence(std::make_shared<LimiterPresence>(loop, *clients.limiter)),
        usage_report_queue(std::make_shared<KeyedQueue>(loop, kMaxWaitingReports)),
        decoders(std::move(decoder_threads)),
        local_limiter(options.loops),
        refusals(std::move(refusal_budget)),
        clock_check(std::move(process_clock)) {}
  ~Worker() {
    keys->Stop();
    key_use->Stop();
    slots->Stop();
    presence->Stop();
  }

  Loop& loop;
  const Clock& clock;
  const PipelineOptions options;
  WorkerClients clients;
  const std::shared_ptr<KeyCache> keys;
  const std::shared_ptr<KeyUseReporter> key_use;
  const std::shared_ptr<SlotKeeper> slots;
  // Started on one loop of the process.
  const std::shared_ptr<LimiterPresence> presence;
  // One report per workspace at a time: reports are free for the client but read the ledger's
  // database.
  static constexpr int kMaxWaitingReports = 64;
  const std::shared_ptr<KeyedQueue> usage_report_queue;
  // Queue per loop for bodies above kMaxBytesDecodedOnLoop. A full queue is decoded in about 3 s.
  static constexpr int kMaxWaitingBodies = 32;
  const std::shared_ptr<ThreadPool> decoders;
  LocalLimiter local_limiter;
  LeasedWorkspaces leased;
  const std::shared_ptr<RefusalBudget> refusals;
  const std::shared_ptr<ClockCheck> clock_check;
  GatewayMetrics metrics;
  // Monotonic time of the last log line about an outage of the limiter.
  int64_t fallback_logged_us = 0;
  // Null until the first snapshot arrives.
  CatalogPtr catalog;
};

}  // namespace tollgate::gateway
