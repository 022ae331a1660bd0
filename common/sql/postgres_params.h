// Parameters of one statement in PostgreSQL's formats. Internal to common/sql.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::sql {

// From pg_type.h.
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

// Returns for each column of the table its position in "a, b, c"; -1: missing. Empty if a column
// has a type other than {int}, {text} and {blob}.
std::vector<int> PlacesOf(const PostgresRowType& type, std::string_view names);
// Returns "$1::bigint[], $2::text[]", starting at this placeholder.
std::string ArrayPlaceholders(std::span<const Param::Kind> kinds, int first);

class PostgresParams {
 public:
  // Sets one parameter per placeholder.
  void SetValues(std::span<const Param> params);
  // Sets one array per column of the cells, which come row by row.
  void SetArrays(std::span<const Param::Kind> kinds, std::span<const Param> cells);
  // As SetArrays, with a value before the arrays.
  void SetValueAndArrays(const Param& value, std::span<const Param::Kind> kinds,
                         std::span<const Param> cells);
  // Sets one array of rows of a table. places: for each column of the table the position of its
  // cell within a row of cells; -1: null.
  void SetRows(const PostgresRowType& type, std::span<const int> places,
               std::span<const Param> cells, size_t width);

  int count() const { return static_cast<int>(values_.size()); }
  const char* const* values() const { return values_.data(); }
  const int* lengths() const { return lengths_.data(); }
  const int* formats() const { return formats_.data(); }

 private:
  void AppendInt(int64_t value, int bytes);
  // Returns its start.
  size_t AppendArrayHead(uint32_t element_oid, size_t count);
  // Appends the arrays as parameters, starting at this index.
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
