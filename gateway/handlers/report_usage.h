// GET /api/v1/usage: what the calling key has used, from the ledger's own tables. Free, and not
// counted by the rate limits; instead one report at a time per workspace and loop is read, so that
// nobody can keep the ledger busy with it. spec: gateway-spec.md "Endpoints", decisions.md 29.
#pragma once

#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

Task<void> ReportUsage(Worker& worker, Exchange& exchange, const Endpoint& endpoint);

}  // namespace tollgate::gateway
