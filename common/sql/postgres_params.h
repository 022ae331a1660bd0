// Parameters of one statement in PostgreSQL's formats. Internal to common/sql.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::sql {

// Of pg_type.h.
inline constexpr uint32_t kByteaOid = 17;
inline constexpr uint32_t kInt8Oid = 20;
inline constexpr uint32_t kTextOid = 25;

// The row type of a table.
struct PostgresRowType {
  struct Column {
    std::string name;
    uint32_t oid = 0;
  };
  uint32_t oid = 0;
  std::vector<Column> columns;
};

// For each column of the table where it stands in "a, b, c"; -1: not there. Empty when a column has
// a type that is not one of {int}, {text} and {blob}.
std::vector<int> PlacesOf(const PostgresRowType& type, std::string_view names);
// "$1::bigint[], $2::text[]", from this placeholder on.
std::string ArrayPlaceholders(std::span<const Param::Kind> kinds, int first);

class PostgresParams {
 public:
  // One parameter per placeholder.
  void SetValues(std::span<const Param> params);
  // One array per column of the cells, which come row by row.
  void SetArrays(std::span<const Param::Kind> kinds, std::span<const Param> cells);
  // The same behind an integer.
  void SetValueAndArrays(const Param& value, std::span<const Param::Kind> kinds,
                         std::span<const Param> cells);
  // One array of rows of a table. places: for each column of the table where its cell stands in a
  // row of the cells; -1: null.
  void SetRows(const PostgresRowType& type, std::span<const int> places,
               std::span<const Param> cells, size_t width);

  int count() const { return static_cast<int>(values_.size()); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }

 private:
  void AppendInt(int64_t value, int bytes);
  // Returns where it begins.
  size_t AppendArrayHead(uint32_t element_oid, size_t count);
  // The parameters from this one on.
  void AppendArrays(std::span<const Param::Kind> kinds, std::span<const Param> cells, size_t first);
  void AppendCell(const Param& cell, bool is_int);
  void Resize(size_t count);

  std::string buffer_;
  std::vector<size_t> offsets_;
  std::vector<const char*> values_;
  std::vector<int> lengths_;
  std::vector<int> formats_;
};

}  // namespace tollgate::sql
