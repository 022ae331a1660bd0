#include "services/billing/storage/row_texts.h"

namespace tollgate::billing {
namespace {

// table: "" for Update.
std::string OnConflict(std::string_view key, std::string_view columns, const std::string& table) {
  std::string text = "ON CONFLICT (" + std::string(key) + ") DO UPDATE SET ";
  bool first = true;
  while (!columns.empty()) {
    const size_t comma = columns.find(", ");
    const std::string column(columns.substr(0, comma));
    columns = comma == std::string_view::npos ? std::string_view() : columns.substr(comma + 2);
    if (!first) text += ", ";
    first = false;
    text += column + " = ";
    if (!table.empty()) text += table + "." + column + " + ";
    text += "excluded." + column;
  }
  return text;
}

}  // namespace

std::string Select(std::string_view columns, std::string_view table) {
  return "SELECT " + std::string(columns) + " FROM " + std::string(table) + " WHERE";
}

std::string Insert(std::string_view columns, std::string_view table) {
  return "INSERT INTO " + std::string(table) + " (" + std::string(columns) + ") VALUES";
}

std::string Update(std::string_view key, std::string_view columns) {
  return OnConflict(key, columns, "");
}

std::string AddUp(const std::string& table, std::string_view key, std::string_view columns) {
  return OnConflict(key, columns, table);
}

}  // namespace tollgate::billing
