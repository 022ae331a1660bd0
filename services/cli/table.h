// The result of a command, printed as text or, with --json, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tollgate::cli {

// One value, with separate JSON and text forms.
struct Cell {
  std::string json;    // a JSON value
  std::string shown;   // the text form
  bool right = false;  // right-aligned: numbers
};

Cell Text(const std::string& text);
Cell Integer(int64_t number);
Cell Bool(bool value);
// JSON: a decimal string; text: "$12.50".
Cell Usd(int64_t nano_usd);
// JSON: null; text: `shown`.
Cell None(const std::string& shown);
// JSON: RFC 3339; text: "2027-01-31 12:00:00"; 0 is None(zero).
Cell Time(int64_t unix_us, const std::string& zero);
// JSON: an array of strings; text: empty_shown for an empty list.
Cell List(const std::vector<std::string>& texts, const std::string& empty_shown);
// JSON: the number; text: the number. 0 means no limit: null and "-".
Cell Limit(int64_t number);

struct Column {
  std::string name;   // JSON member name
  std::string title;  // heading of the text form
};

// Numbers next to a list, keyed by their JSON member.
using Counts = std::vector<std::pair<std::string, int64_t>>;

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void Add(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  // [ {…}, … ]
  std::string RowsAsJson() const;
  // {"<count>": 7, …, "<list>": [ {…}, … ]}
  std::string ListAsJson(const std::string& list, const Counts& counts = {}) const;
  // Aligned columns with headings, or when_empty if there are no rows.
  std::string ListAsText(const std::string& when_empty) const;
  // Only the first row: a JSON object, or one "title  value" line per column.
  std::string RecordAsJson() const;
  std::string RecordAsText() const;

 private:
  std::string RowAsJson(const std::vector<Cell>& row) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tollgate::cli
