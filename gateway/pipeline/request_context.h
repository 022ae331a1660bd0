// One inference request in the pipeline: what the stages have found and taken so far.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/id.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/edge/request_trace.h"
#include "gateway/pipeline/canonical_request.h"
#include "gateway/pipeline/surface.h"
#include "gateway/worker/hold_guard.h"
#include "gateway/worker/slot.h"
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
  // max_tokens for the engine, per sample; 0: not sent.
  int64_t max_tokens = 0;
  // The prompt may exceed the window, alone or with the client's max_tokens, so it must be counted
  // (decisions 18, 44).
  bool needs_count = false;
};

// A model that may answer, with the results of the stages before the limits.
struct Candidate {
  const catalog::v1::Model* model = nullptr;  // points into the catalog or to unlisted
  std::shared_ptr<const catalog::v1::Model> unlisted;
  TokenBounds bounds;
};

// Larger requests are not kept for another router, because a copy would double the memory of large
// bodies.
inline constexpr size_t kMaxMovedBytes = 64 << 10;

struct RequestContext;
// Adds what the pipeline knows of the request to its trace, if the trace will be exported
// (trace_request.cc).
void DescribeTrace(const RequestContext& context);

struct RequestContext {
  RequestContext(Worker& worker, Exchange& exchange, const Endpoint& endpoint,
                 const Surface& surface)
      : worker(worker),
        exchange(exchange),
        endpoint(endpoint),
        surface(surface),
        catalog(worker.catalog),
        id(exchange.request().id.empty() ? Id::New() : exchange.request().id),
        arrived_us(worker.clock.MonotonicUs()),
        trace(TraceOf(exchange.request())),
        body_memory(exchange.memory()),
        kept_memory(exchange.memory()) {}
  ~RequestContext() {
    if (trace != nullptr) DescribeTrace(*this);
  }

  Worker& worker;
  Exchange& exchange;
  const Endpoint& endpoint;
  const Surface& surface;
  const CatalogPtr catalog;
  // Key of the hold, the slot and the settlement. Created by the gateway, never taken from the
  // client (decision 26). Changes only when a lost router had ended the request (tries).
  Id id;
  const int64_t arrived_us;  // monotonic
  // Null: the request is not traced. Lives as long as the request.
  RequestTrace* const trace;

  // Memory reserved for a decoded body. The HTTP server accounts for all others.
  MemoryReservation body_memory;       // decode_body
  MemoryReservation kept_memory;       // dispatch: for `movable`, if it is large
  KeyPtr key;                          // authenticate
  CanonicalRequest canonical;          // parse
  std::string idempotency_key_digest;  // read_idempotency_key; empty: no such header
  // The models that may answer, in the order of attempts; empty: only `model`.
  std::vector<Candidate> candidates;  // candidates
  // Several models could answer, so a header names the one that did.
  bool names_model = false;  // candidates
  // The candidate being tried: index, catalog entry, token bounds.
  size_t candidate = 0;
  const catalog::v1::Model* model = nullptr;           // resolve_model
  std::shared_ptr<const catalog::v1::Model> unlisted;  // resolve_model; null: listed
  TokenBounds bounds;                                  // bound
  Headers limit_headers;                               // admit
  int admissions = 0;                                  // admit: number of slots asked for
  // The last refusal came from a limit of this model, so another model may be admitted.
  bool model_at_limit = false;  // admit, authorize
  // Destroyed in reverse order: what was taken last is released first.
  LocalSlot local_slot;                        // admit
  Slot slot;                                   // admit
  HoldGuard hold;                              // authorize
  billing::v1::AuthorizeResult authorization;  // authorize
  // The request goes to the router without a hold; the router admits it from a lease
  // (docs/adr/0042).
  bool admitted_by_router = false;  // authorize
  // A request with this idempotency key has been answered: no hold is taken, its answer is
  // repeated.
  bool repeats_answer = false;             // authorize
  std::unique_ptr<Generation> generation;  // dispatch
  // Whether the router is asked which engine it chose, and its answer for the header
  // (debug_header.h); empty: none yet.
  bool explains_choice = false;  // dispatch
  std::string choice;            // relay
  // Number of the attempt at billing and the routers. Grows for another router and for another
  // model.
  int32_t attempt = 0;
  // A router was lost and another one has the request. Happens at most once.
  bool moved = false;  // tries
  // Copy of the request while it can still be sent again.
  std::unique_ptr<inference::v1::GenerateRequest> movable;  // dispatch
};

}  // namespace tollgate::gateway
