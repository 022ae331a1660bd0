// Receipts: the ledger's record of one request (docs/design/ledger.md 12).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

// Maximum number of matches that are counted.
inline constexpr int64_t kMaxMatches = 1000;

struct ReceiptRecord {
  Hold hold;
  std::vector<Entry> entries;  // oldest first
  int64_t matches = 1;         // number of matching requests; this is the newest
};
// Means every workspace (AIP-159). For operators who search by request id only.
inline constexpr std::string_view kAnyWorkspace = "-";

// Finds a request by a text: its id in hexadecimal digits, an answer's id (a prefix and the
// request's id in base62, decision 65), or the x-request-id that the caller saw. Running requests
// are found by the first two, and by an x-request-id that the gateway created. In kAnyWorkspace an
// x-request-id that the caller chose finds nothing: it is only known within its workspace.
sql::SqlResult<std::optional<ReceiptRecord>> ReadReceipt(sql::Database& database,
                                                         const std::string& workspace,
                                                         const std::string& text);

struct RequestQuery {
  std::string workspace;
  std::optional<std::string> key_id, model, client_request_id;
  std::optional<Outcome> outcome;
  int64_t start_us = 0;        // admission, inclusive
  int64_t end_us = INT64_MAX;  // exclusive
  int limit = 50;
  Id after;  // last request of the previous page; empty: starts with the newest
};
// Closed requests by the time of their ids, newest first. Returns at most limit + 1.
sql::SqlResult<std::vector<Hold>> ReadRequests(sql::Database& database, const RequestQuery& query);

}  // namespace tollgate::billing
