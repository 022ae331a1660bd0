#include "common/sql/postgres_params.h"

#include <charconv>

namespace tollgate::sql {

std::string ArrayPlaceholders(std::span<const Param::Kind> kinds, int first) {
  std::string text;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) text += ", ";
    text += '$' + std::to_string(i + static_cast<size_t>(first));
    text += kinds[i] == Param::Kind::kInt    ? "::bigint[]"
            : kinds[i] == Param::Kind::kBlob ? "::bytea[]"
                                             : "::text[]";
  }
  return text;
}

std::vector<int> PlacesOf(const PostgresRowType& type, std::string_view names) {
  std::vector<int> places;
  for (const PostgresRowType::Column& column : type.columns) {
    int place = -1;
    int at = 0;
    for (std::string_view rest = names; !rest.empty() && place < 0; ++at) {
      const size_t comma = rest.find(", ");
      if (rest.substr(0, comma) == column.name) place = at;
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
    }
    if (column.oid != kInt8Oid && column.oid != kTextOid && column.oid != kByteaOid) return {};
    places.push_back(place);
  }
  return places;
}

void PostgresParams::Resize(size_t count) {
  buffer_.clear();
  offsets_.resize(count);
  values_.resize(count);
  lengths_.resize(count);
  formats_.assign(count, 1);
}

void PostgresParams::SetValues(std::span<const Param> params) {
  const size_t count = params.size();
  Resize(count);
  // Texts need a terminating NUL, integers their digits; both are written to one buffer.
  for (size_t i = 0; i < count; ++i) {
    const Param& param = params[i];
    offsets_[i] = buffer_.size();
    // Text format would end at a NUL. In binary format the server sees the NUL and refuses it.
    const bool binary =
        param.kind() == Param::Kind::kBlob ||
        (param.kind() == Param::Kind::kText && param.bytes().find('\0') != std::string_view::npos);
    formats_[i] = binary ? 1 : 0;
    if (param.kind() == Param::Kind::kInt) {
      char digits[24];
      const auto end = std::to_chars(digits, digits + sizeof digits, param.int_value()).ptr;
      buffer_.append(digits, end);
    } else {
      buffer_.append(param.bytes());
    }
    lengths_[i] = static_cast<int>(buffer_.size() - offsets_[i]);
    buffer_ += '\0';
  }
  for (size_t i = 0; i < count; ++i) {
    const bool null = params[i].kind() == Param::Kind::kNull;
    values_[i] = null ? nullptr : buffer_.data() + offsets_[i];
  }
}

void PostgresParams::SetArrays(std::span<const Param::Kind> kinds, std::span<const Param> cells) {
  Resize(kinds.size());
  AppendArrays(kinds, cells, 0);
}

void PostgresParams::SetValueAndArrays(const Param& value, std::span<const Param::Kind> kinds,
                                       std::span<const Param> cells) {
  Resize(kinds.size() + 1);
  offsets_[0] = buffer_.size();
  AppendInt(value.int_value(), 8);
  lengths_[0] = 8;
  AppendArrays(kinds, cells, 1);
  values_[0] = buffer_.data() + offsets_[0];
}

void PostgresParams::AppendArrays(std::span<const Param::Kind> kinds, std::span<const Param> cells,
                                  size_t first) {
  const size_t width = kinds.size();
  for (size_t column = 0; column < width; ++column) {
    const bool is_int = kinds[column] == Param::Kind::kInt;
    const size_t at_param = first + column;
    offsets_[at_param] = AppendArrayHead(is_int                                ? kInt8Oid
                                         : kinds[column] == Param::Kind::kBlob ? kByteaOid
                                                                               : kTextOid,
                                         cells.size() / width);
    for (size_t at = column; at < cells.size(); at += width) {
      if (cells[at].kind() == Param::Kind::kNull) buffer_[offsets_[at_param] + 7] = 1;
      AppendCell(cells[at], is_int);
    }
    lengths_[at_param] = static_cast<int>(buffer_.size() - offsets_[at_param]);
  }
  for (size_t i = first; i < first + width; ++i) values_[i] = buffer_.data() + offsets_[i];
}

void PostgresParams::SetRows(const PostgresRowType& type, std::span<const int> places,
                             std::span<const Param> cells, size_t width) {
  Resize(1);
  AppendArrayHead(type.oid, cells.size() / width);
  for (; !cells.empty(); cells = cells.subspan(width)) {
    const size_t start = buffer_.size();
    AppendInt(0, 4);  // size, set below
    AppendInt(static_cast<int64_t>(places.size()), 4);
    for (size_t i = 0; i < places.size(); ++i) {
      AppendInt(type.columns[i].oid, 4);
      AppendCell(places[i] < 0 ? Param(nullptr) : cells[static_cast<size_t>(places[i])],
                 type.columns[i].oid == kInt8Oid);
    }
    const uint64_t size = buffer_.size() - start - 4;
    for (int i = 0; i < 4; ++i) {
      buffer_[start + static_cast<size_t>(i)] = static_cast<char>(size >> (24 - 8 * i) & 0xff);
    }
  }
  lengths_[0] = static_cast<int>(buffer_.size());
  values_[0] = buffer_.data();
}

size_t PostgresParams::AppendArrayHead(uint32_t element_oid, size_t count) {
  const size_t start = buffer_.size();
  AppendInt(1, 4);  // dimensions
  AppendInt(0, 4);  // flag: contains no null
  AppendInt(element_oid, 4);
  AppendInt(static_cast<int64_t>(count), 4);
  AppendInt(1, 4);  // lower bound
  return start;
}

void PostgresParams::AppendCell(const Param& cell, bool is_int) {
  if (cell.kind() == Param::Kind::kNull) {
    AppendInt(-1, 4);
  } else if (is_int) {
    AppendInt(8, 4);
    AppendInt(cell.int_value(), 8);
  } else {
    AppendInt(static_cast<int64_t>(cell.bytes().size()), 4);
    buffer_.append(cell.bytes());
  }
}

void PostgresParams::AppendInt(int64_t value, int bytes) {
  char big_endian[8];
  for (int i = 0; i < bytes; ++i) {
    big_endian[i] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * (bytes - 1 - i)) & 0xff);
  }
  buffer_.append(big_endian, static_cast<size_t>(bytes));
}

}  // namespace tollgate::sql
