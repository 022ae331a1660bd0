// The stages of an inference request, in their order (decisions.md 16). Each looks at the context,
// adds to it, and fails with the error that the caller gets. What a stage takes hangs on the
// context and is given back when the context goes.
#pragma once

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Who calls: 401, 403 virtual_key_blocked, 503 when nobody can say.
Task<Result<void>> Authenticate(RequestContext& context);
// What is asked: 400. Frees the request's body.
Result<void> Parse(RequestContext& context);
// Of which model: 404, 401 for another workspace's private one, 403 model_blocked, 503 not serving.
Result<void> ResolveModel(RequestContext& context);
// Whether the model can do that at all: 400.
Result<void> CheckCapability(RequestContext& context);
// How large it may become: 400 context_length_exceeded when it can not fit.
Result<void> BoundTokens(RequestContext& context);
// Whether the limits have room: 429. Takes a lease.
Task<Result<void>> Admit(RequestContext& context);
// Whether it is paid for: 402, 429 while other requests hold the credit, 503. Takes a hold.
Task<Result<void>> AuthorizeSpend(RequestContext& context);
// Hands it to a router.
void Dispatch(RequestContext& context);
// Brings the answer to the caller. Deals with its own errors: the status may have gone out already.
Task<void> Relay(RequestContext& context);
// The answer to max_tokens: 0, which no engine takes (decisions.md 30).
Task<void> AnswerWithoutEngine(RequestContext& context);

// All of them; the handler of every inference endpoint.
Task<void> RunInference(Worker& worker, const Surface& surface, Exchange& exchange,
                        const Endpoint& endpoint);

// Ends a request that has not begun its answer.
Task<void> Refuse(RequestContext& context, const Error& error);

}  // namespace tollgate::gateway
