// Evidence of settlements that cannot be delivered: one line of JSON per piece, appended and
// flushed before the piece leaves the outbox. Only operators read it; see docs/operations.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::inference_router {

struct QuarantinedPiece {
  // corrupt: bytes without a valid record. unparsable: a record that is not a settlement. gave_up:
  // a settlement that the ledger did not answer for a day.
  std::string_view reason;
  int64_t offset = -1;     // in the outbox; -1: unknown
  std::string request_id;  // 16 bytes, or empty
  std::string_view data;
};

// Counts the piece, logs it and appends it to the file. Returns false if it could not be written;
// its source must then be kept.
bool Quarantine(const std::string& path, const QuarantinedPiece& piece);

}  // namespace tollgate::inference_router
