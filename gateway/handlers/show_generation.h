// GET /api/v1/generation?id=: the receipt of one answer, found by its id or its x-request-id
// (decision 65) with any key of its workspace. Free of charge. Reads the ledger in the same queue
// as the usage report.
#pragma once

#include <string>

#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

Task<void> ShowGeneration(Worker& worker, Exchange& exchange, const Endpoint& endpoint);

// {"data":{…}}, in the format of OpenRouter's endpoint of this name where it fits. Amounts are
// decimal strings in USD.
std::string RenderGeneration(const billing::v1::GetReceiptResponse& found);

}  // namespace tollgate::gateway
