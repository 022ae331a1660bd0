// The stages of an inference request, in their order (decisions.md 16). Each looks at the context,
// adds to it, and fails with the error that the caller gets. What a stage takes hangs on the
// context and is given back when the context goes.
#pragma once

#include <cstdint>
#include <string>

#include <optional>

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
// The likeliest size of a prompt that no tokenizer has seen. It may be above the window.
int64_t LikelyTokens(const PromptSize& prompt);
// All of the above: whatever the request itself can get wrong.
Task<Result<void>> Understand(RequestContext& context);
// Whether the limits have room for a request of so many tokens (0: the token limits have no say):
// 429. Takes a lease.
Task<Result<void>> Admit(RequestContext& context, int64_t tokens);
// What a generation is expected to come to, until it has.
int64_t ExpectedTokens(const TokenBounds& bounds);
// Whether it is paid for: 402, 429 while other requests hold the credit, 503. Takes a hold.
Task<Result<void>> AuthorizeSpend(RequestContext& context);
// Hands it to a router.
void Dispatch(RequestContext& context);
// Brings the answer to the caller. Deals with its own errors: the status may have gone out already.
Task<void> Relay(RequestContext& context);
// The answer to max_tokens: 0, which no engine takes (decisions.md 30).
Task<void> AnswerWithoutEngine(RequestContext& context);

struct PromptCount {
  int64_t tokens = 0;
  bool estimated = true;
};
// The size of the prompt by the tokenizer of one of the model's engines, which is what the engine
// would bill; its likeliest size when none can tell.
Task<PromptCount> CountPrompt(RequestContext& context);
// The error of a prompt that does not fit, or not together with max_tokens, where no engine would
// find that out (decisions.md 18). An estimate proves nothing.
std::optional<Error> FindOverflow(const RequestContext& context, const PromptCount& prompt);

// Of a context-length error that an engine found: names the field for the output where that is
// what does not fit.
void NameFieldAtFault(const CanonicalRequest& request, Error& error);

// All of them; the handler of every inference endpoint.
Task<void> RunInference(Worker& worker, const Surface& surface, Exchange& exchange,
                        const Endpoint& endpoint);

// What stands between the stages and the answer: whether the request goes on. If not, it has been
// answered, or nobody is there any more.
Task<bool> MayGoOn(RequestContext& context, const Result<void>& prepared);

AnswerStamp MakeStamp(const RequestContext& context);
// Ends a request that went well with a JSON body.
Task<void> SendJson(RequestContext& context, std::string body);
// Gives back what was taken and refuses: the caller's next request finds it free.
Task<void> GiveBackAndRefuse(RequestContext& context, Error error);
// Ends a request that has not begun its answer.
Task<void> Refuse(RequestContext& context, const Error& error);

}  // namespace tollgate::gateway
