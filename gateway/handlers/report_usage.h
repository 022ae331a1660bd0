// GET /api/v1/usage: the usage of the calling key, read from the ledger's tables. Free of charge
// and exempt from rate limits. Instead, only one report per workspace and loop is read at a time,
// so that a client cannot overload the ledger. See docs/contract.md "Endpoints", decision 29.
#pragma once

#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

Task<void> ReportUsage(Worker& worker, Exchange& exchange, const Endpoint& endpoint);

}  // namespace tollgate::gateway
