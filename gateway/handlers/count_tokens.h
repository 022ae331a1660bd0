// POST /v1/messages/count_tokens and POST /v1/responses/input_tokens: the size of a prompt, free of
// charge. See docs/design/wire.md 5.4 and 6.4, decision 7.
#pragma once

#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/pipeline/surface.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Counts with the tokenizer of one of the model's engines, so the result is what the request would
// be billed for. When no engine can count or no router is reachable, the result is the estimate of
// the token limits: one token per four bytes of text and four per message.
Task<void> CountTokens(Worker& worker, const Surface& surface, Exchange& exchange,
                       const Endpoint& endpoint);

}  // namespace tollgate::gateway
