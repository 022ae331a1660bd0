// Receipts: one request as the ledger has it (docs/design/ledger.md 12).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/domain/types.h"

namespace tollgate::billing {

// Matches are counted up to here.
inline constexpr int64_t kMaxMatches = 1000;

struct ReceiptRecord {
  Hold hold;
  std::vector<Entry> entries;  // oldest first
  int64_t matches = 1;         // requests that the text names; this is the newest
};
// Stands for every workspace (AIP-159). An operator who has nothing but an id searches with it.
inline constexpr std::string_view kAnyWorkspace = "-";

// The request that a text names: its id in hexadecimal digits, an answer's id (a prefix and the
// request's id in base62, decision 65), or the x-request-id that the caller saw. Running requests
// are found by the first two, and by an x-request-id that the gateway made. In kAnyWorkspace an
// x-request-id of the caller's own making finds nothing: it is known in its workspace only.
sql::SqlResult<std::optional<ReceiptRecord>> ReadReceipt(sql::Database& database,
                                                         const std::string& workspace,
                                                         const std::string& text);

struct RequestQuery {
  std::string workspace;
  std::optional<std::string> key_id, model, client_request_id;
  std::optional<Outcome> outcome;
  int64_t start_us = 0;        // of the admission, inclusive
  int64_t end_us = INT64_MAX;  // exclusive
  int limit = 50;
  Id after;  // continues after this request of the previous page; empty: starts with the newest
};
// Closed requests by the time of their ids, newest first. At most limit + 1.
sql::SqlResult<std::vector<Hold>> ReadRequests(sql::Database& database, const RequestQuery& query);

}  // namespace tollgate::billing
