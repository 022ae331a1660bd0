// GET /api/v1/generation?id=: the receipt of one answer, by its id or its x-request-id (decision
// 65), for keys of its workspace. Free of charge; reads the ledger like the usage report, and as
// many at a time.
#pragma once

#include <string>

#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

Task<void> ShowGeneration(Worker& worker, Exchange& exchange, const Endpoint& endpoint);

// {"data":{…}}, in the form of OpenRouter's endpoint of this name where that fits; amounts are
// decimal strings in USD.
std::string RenderGeneration(const billing::v1::GetReceiptResponse& found);

}  // namespace tollgate::gateway
