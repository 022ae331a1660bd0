// POST /v1/messages/count_tokens: the size of a prompt, free of charge. spec: wire.md 6.4,
// decisions.md 7.
#pragma once

#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/pipeline/surface.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Counts by the tokenizer of one of the model's engines, so that the answer is what the request
// would be billed for. Where no engine can tell, or the routers are away, it is the estimate that
// limits are admitted with: a token for each four bytes of text, four for each message.
Task<void> CountTokens(Worker& worker, const Surface& surface, Exchange& exchange,
                       const Endpoint& endpoint);

}  // namespace tollgate::gateway
