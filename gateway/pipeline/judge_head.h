// What the head of a request says before its body is read (decision 46): a caller without a valid
// credential makes the gateway hold no more than the head.
#pragma once

#include "common/http/head_verdict.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Refuses with what the pipeline would answer: 401, 403, or 503 when auth is unreachable. The key
// is looked up if the cache cannot answer; the pipeline then finds it in the cache. Nothing is
// taken from any limit.
http::HeadVerdict JudgeHead(Worker& worker, const Endpoint& endpoint, const HttpRequest& request);

}  // namespace tollgate::gateway
