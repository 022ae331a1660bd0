// Shared by the endpoints that answer with data of the ledger.
#pragma once

#include <string>

#include "common/runtime/task.h"
#include "gateway/edge/endpoint.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

// Waits for the workspace's turn to read the ledger. The turn ends with the ticket. Fails with
// rate_limited when too many reports of the workspace are waiting, and with service_unavailable
// when the client has left.
Task<Result<KeyedQueue::Ticket>> TakeReportTurn(Worker& worker, const Exchange& exchange,
                                                const std::string& workspace_id);

// The 503 of a report whose call to billing failed.
Error ReportUnavailable(const Error& billing);

// Sends the JSON or the error, and counts the response.
Task<void> SendReport(Worker& worker, Exchange& exchange, const Endpoint& endpoint,
                      Result<std::string> json);

}  // namespace tollgate::gateway
