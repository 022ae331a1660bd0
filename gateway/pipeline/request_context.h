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
  // The prompt may be above the window, alone or with the client's max_tokens: only its tokens can
  // tell (decisions 18, 44).
  bool needs_count = false;
};

// A model that may answer, as the stages before the limits have found it.
struct Candidate {
  const catalog::v1::Model* model = nullptr;  // lives in the catalog, or in unlisted
  std::shared_ptr<const catalog::v1::Model> unlisted;
  TokenBounds bounds;
};

struct RequestContext;
// Tells the trace what the pipeline knows of the request, if it will be exported
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
  // Key of the hold, the lease and the settlement. Made by the gateway, never taken from the client
  // (decision 26). Another one only when a lost router had ended it (move).
  Id id;
  const int64_t arrived_us;  // monotonic
  // Null: the request is not traced. Lives as long as the request.
  RequestTrace* const trace;

  // Of a body that was decoded; of any other the server counts it.
  MemoryReservation body_memory;       // decode_body
  MemoryReservation kept_memory;       // dispatch: of `movable`, where it is large
  KeyPtr key;                          // authenticate
  CanonicalRequest canonical;          // parse
  std::string idempotency_key_digest;  // read_idempotency_key; empty: no such header
  // What may answer, in the order of the tries; empty: only `model`.
  std::vector<Candidate> candidates;  // candidates
  // Several models could answer, so the answer names its model in a header, too.
  bool names_model = false;  // candidates
  // Of the candidate that is tried now: which one it is, its entry, which lives in catalog or in
  // unlisted, and its bounds.
  size_t candidate = 0;
  const catalog::v1::Model* model = nullptr;           // resolve_model
  std::shared_ptr<const catalog::v1::Model> unlisted;  // resolve_model; null: it is listed
  TokenBounds bounds;                                  // bound
  Headers limit_headers;                               // admit
  int admissions = 0;                                  // admit: how often a lease was asked for
  // The last refusal was by a limit that is this model's: another one may be admitted.
  bool model_at_limit = false;  // admit, authorize
  // Destroyed in reverse order: what was taken last is released first.
  LocalSlot local_slot;                        // admit
  Lease lease;                                 // admit
  HoldGuard hold;                              // authorize
  billing::v1::AuthorizeResult authorization;  // authorize
  // It goes to the router without a hold, which admits it from a lease (docs/adr/0042).
  bool admitted_by_router = false;  // authorize
  // The idempotency key's request has been answered: nothing is held, its answer is repeated.
  bool repeats_answer = false;             // authorize
  std::unique_ptr<Generation> generation;  // dispatch
  // The router is asked which engine it has chosen, and what it said for the header
  // (debug_header.h); empty: nothing yet.
  bool explains_choice = false;  // dispatch
  std::string choice;            // relay
  // Number of the try at billing and the routers: another router, or another model.
  int32_t attempt = 0;
  // Once: a router was lost, and another one has the request.
  bool moved = false;  // move
  // The request, as long as it can still be sent again.
  std::unique_ptr<inference::v1::GenerateRequest> movable;  // dispatch
};

}  // namespace tollgate::gateway
