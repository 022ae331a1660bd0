// Checks the head of a request before its body is read (decision 46): a caller without a valid
// credential cannot make the gateway buffer more than the head.
#pragma once

#include "common/http/head_verdict.h"
#include "gateway/edge/endpoint.h"
#include "gateway/edge/exchange.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Refuses with the same error as the pipeline: 401, 403, or 503 when auth is unreachable. Looks the
// key up if the cache cannot answer; the pipeline then finds it in the cache. Takes nothing from
// any limit.
http::HeadVerdict JudgeHead(Worker& worker, const Endpoint& endpoint, HttpRequest& request);

}  // namespace tollgate::gateway
