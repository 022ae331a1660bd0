// What the endpoints share that answer with data of the ledger.
#pragma once

#include <string>

#include "common/runtime/task.h"
#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Waits for the workspace's turn to read the ledger; the turn ends with the ticket. Errors:
// rate_limited when too many of the workspace wait, and one that nobody gets when the client has
// left.
Task<Result<KeyedQueue::Ticket>> TakeReportTurn(Worker& worker, const Exchange& exchange,
                                                const std::string& workspace_id);

// The error of a report whose call of billing failed: 503.
Error ReportUnavailable(const Error& billing);

// Sends the JSON, or the error that it could not be made for, and counts it.
Task<void> SendReport(Worker& worker, Exchange& exchange, const Endpoint& endpoint,
                      Result<std::string> json);

}  // namespace tollgate::gateway
