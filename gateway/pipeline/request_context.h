// One inference request on its way through the pipeline: what each stage has found out and taken.
#pragma once

#include <memory>
#include <string>

#include "common/base/id.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/pipeline/canonical_request.h"
#include "gateway/pipeline/surface.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Token counts that a request is judged by (reliability.md 1.4).
struct TokenBounds {
  // Never more than the real prompt, never less, and the likeliest.
  int64_t prompt_lower = 0;
  int64_t prompt_upper = 0;
  int64_t prompt_estimate = 0;
  // Over all samples.
  int64_t output_upper = 0;
  // What the engine is told per sample; 0: nothing.
  int64_t max_tokens = 0;
  // The engine is told less than the caller asked for, so it can not find out that this does not
  // fit beside the prompt: only a count can.
  bool count_decides = false;
};

struct RequestContext {
  RequestContext(Worker& on, Exchange& with, const Endpoint& at, const Surface& in)
      : worker(on),
        exchange(with),
        endpoint(at),
        surface(in),
        catalog(on.catalog),
        id(Id::New()),
        arrived_us(on.clock.MonotonicUs()) {}

  Worker& worker;
  Exchange& exchange;
  const Endpoint& endpoint;
  const Surface& surface;
  const CatalogPtr catalog;
  // The id that money hangs on, made here (decisions.md 26).
  const Id id;
  const int64_t arrived_us;

  KeyPtr key;                                 // authenticate
  CanonicalRequest canonical;                 // parse
  const catalog::v1::Model* model = nullptr;  // resolve_model; lives in catalog, or is unlisted
  catalog::v1::Model unlisted;                // resolve_model
  TokenBounds bounds;                         // bound
  // What the caller is told about its limits.
  Headers limit_headers;  // admit
  // The order matters: what was taken last is given back first.
  LocalSlot local_slot;                    // admit
  Lease lease;                             // admit
  HoldGuard hold;                          // authorize
  billing::v1::AuthorizeResult granted;    // authorize
  std::unique_ptr<Generation> generation;  // dispatch
};

}  // namespace tollgate::gateway
