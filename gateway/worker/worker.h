// What the requests of one loop share: clients, caches, settings. Touched by that loop's thread
// only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/runtime/loop.h"
#include "gateway/worker/catalog_view.h"
#include "gateway/worker/key_cache.h"
#include "gateway/worker/keyed_queue.h"
#include "gateway/worker/lease.h"
#include "gateway/worker/local_limiter.h"
#include "gateway/worker/metrics.h"

namespace tollgate::gateway {

struct PipelineOptions {
  std::string brand = "tollgate";
  std::vector<std::string> legacy_key_prefixes;
  bool refuse_large_max_tokens = false;
  int64_t keep_alive_ms = 15'000;
  // Loops of this process; the local limits are divided among them.
  int loops = 1;
};

struct WorkerClients {
  std::unique_ptr<AuthClient> auth;
  std::unique_ptr<RateLimitClient> limiter;
  std::unique_ptr<BillingClient> billing;
  std::unique_ptr<InferenceClient> inference;
};

struct Worker {
  // lookups: shared by the workers of a process.
  Worker(Loop& on, const Clock& with, PipelineOptions settings, WorkerClients connections,
         std::shared_ptr<AddressLimiter> lookups)
      : loop(on),
        clock(with),
        options(std::move(settings)),
        clients(std::move(connections)),
        keys(std::make_shared<KeyCache>(loop, clock, *clients.auth, std::move(lookups))),
        leases(std::make_shared<LeaseKeeper>(loop, *clients.limiter)),
        usage_turns(std::make_shared<Turns>(loop, kMostWaitingReports)),
        local_limiter(options.loops) {}
  ~Worker() { leases->Stop(); }

  Loop& loop;
  const Clock& clock;
  const PipelineOptions options;
  WorkerClients clients;
  const std::shared_ptr<KeyCache> keys;
  const std::shared_ptr<LeaseKeeper> leases;
  // Of usage reports, by workspace: they are free and read the ledger's database.
  static constexpr int kMostWaitingReports = 64;
  const std::shared_ptr<Turns> usage_turns;
  LocalLimiter local_limiter;
  GatewayMetrics metrics;
  // Monotonic µs of the last log line about the limiter's absence.
  int64_t fallback_logged_us = 0;
  // Null until the first snapshot.
  CatalogPtr catalog;
};

}  // namespace tollgate::gateway
