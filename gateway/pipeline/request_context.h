// One inference request in the pipeline: what the stages have found and taken so far.
#pragma once

#include <memory>
#include <string>

#include "common/base/id.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/pipeline/canonical_request.h"
#include "gateway/pipeline/surface.h"
#include "gateway/worker/hold_guard.h"
#include "gateway/worker/lease.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Bounds on the tokens of a request (docs/design/ledger.md 4).
struct TokenBounds {
  // Bounds on the real prompt, and its expected size.
  int64_t prompt_lower = 0;
  int64_t prompt_upper = 0;
  int64_t prompt_estimate = 0;
  // Summed over all samples.
  int64_t output_upper = 0;
  // What the engine gets as max_tokens, per sample; 0: not sent.
  int64_t max_tokens = 0;
  // The engine gets a lower max_tokens than the client sent and cannot detect that the client's
  // does not fit beside the prompt: the prompt has to be counted.
  bool needs_count = false;
};

struct RequestContext {
  RequestContext(Worker& worker, Exchange& exchange, const Endpoint& endpoint,
                 const Surface& surface)
      : worker(worker),
        exchange(exchange),
        endpoint(endpoint),
        surface(surface),
        catalog(worker.catalog),
        id(exchange.request().id.empty() ? Id::New() : exchange.request().id),
        arrived_us(worker.clock.MonotonicUs()) {}

  Worker& worker;
  Exchange& exchange;
  const Endpoint& endpoint;
  const Surface& surface;
  const CatalogPtr catalog;
  // Key of the hold, the lease and the settlement. Made by the gateway, never taken from the client
  // (decision 26).
  const Id id;
  const int64_t arrived_us;  // monotonic

  KeyPtr key;                                 // authenticate
  CanonicalRequest canonical;                 // parse
  std::string idempotency_key_digest;         // read_idempotency_key; empty: no such header
  const catalog::v1::Model* model = nullptr;  // resolve_model; lives in catalog, or is unlisted
  catalog::v1::Model unlisted;                // resolve_model
  TokenBounds bounds;                         // bound
  Headers limit_headers;                      // admit
  // Destroyed in reverse order: what was taken last is released first.
  LocalSlot local_slot;                        // admit
  Lease lease;                                 // admit
  HoldGuard hold;                              // authorize
  billing::v1::AuthorizeResult authorization;  // authorize
  // The idempotency key's request has been answered: nothing is held, its answer is repeated.
  bool repeats_answer = false;             // authorize
  std::unique_ptr<Generation> generation;  // dispatch
  // The request, as long as it can still be moved to another router.
  std::unique_ptr<inference::v1::GenerateRequest> movable;  // dispatch
};

}  // namespace tollgate::gateway
