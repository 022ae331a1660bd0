// Errors and rows of libpq's results. Internal to common/sql.
#pragma once

#include <libpq-fe.h>

#include <charconv>
#include <memory>
#include <string_view>

#include "common/sql/sql.h"

namespace tollgate::sql {

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using ResultPtr = std::unique_ptr<PGresult, ClearResult>;

inline ErrorKind KindOfSqlState(std::string_view state) {
  if (state == "23505") return ErrorKind::kUnique;
  if (state.starts_with("23")) return ErrorKind::kConstraint;
  // Serialization failure, deadlock, statement timeout.
  if (state == "40001" || state == "40P01" || state == "57014") return ErrorKind::kRetry;
  if (state == "55P03") return ErrorKind::kLocked;
  // Connection exceptions, server starting or stopping, too many connections, disk full. Two more
  // count as unreachable: a server that became a standby (25006), and one that ended this session
  // because it was idle in a transaction (25P03).
  if (state.starts_with("08") || state.starts_with("57P") || state == "53300" || state == "53100" ||
      state == "25006" || state == "25P03") {
    return ErrorKind::kConnection;
  }
  return ErrorKind::kOther;
}

// Whether the coordinator of a distributed database (Citus) reports that it cannot reach another
// node, or that the node ends its sessions. The node may have committed before.
inline bool IsOfAnotherNode(const PGresult* result, std::string_view state) {
  const char* const text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string_view message = text == nullptr ? "" : text;
  if (state.starts_with("08") || message.starts_with("could not commit transaction") ||
      message.starts_with("failure on connection marked as essential")) {
    return true;
  }
  const char* const context = PQresultErrorField(result, PG_DIAG_CONTEXT);
  return state.starts_with("57P") && context != nullptr &&
         std::string_view(context).find("while executing command on ") != std::string_view::npos;
}

// Results are in binary format: integers are big-endian, in the width of their type.
class PostgresRow : public Row {
 public:
  explicit PostgresRow(const PGresult* result) : result_(result) {}
  void set_row(int row) { row_ = row; }
  bool IsNull(int column) const override { return PQgetisnull(result_, row_, column) != 0; }
  int64_t Int(int column) const override {
    const std::string_view bytes = Bytes(column);
    if (bytes.empty() || bytes.size() > 8) return 0;
    uint64_t value = (bytes[0] & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
    return static_cast<int64_t>(value);
  }
  std::string_view Bytes(int column) const override {
    return {PQgetvalue(result_, row_, column),
            static_cast<size_t>(PQgetlength(result_, row_, column))};
  }

 private:
  const PGresult* result_;
  int row_ = 0;
};

inline void PassRows(const PGresult* result, const RowFn& row) {
  PostgresRow current(result);
  const int rows = PQntuples(result);
  for (int i = 0; i < rows; ++i) {
    current.set_row(i);
    row(current);
  }
}

inline int64_t ChangedRows(PGresult* result) {
  const std::string_view count = PQcmdTuples(result);
  int64_t changed = 0;
  std::from_chars(count.data(), count.data() + count.size(), changed);
  return changed;
}

}  // namespace tollgate::sql
