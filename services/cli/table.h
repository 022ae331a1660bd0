// What a command found out, shown either as text for people or as JSON for programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tollgate::cli {

// One value: what programs read (JSON) and what people read may differ.
struct Cell {
  std::string json;    // already JSON
  std::string shown;   // text for people
  bool right = false;  // numbers stand to the right
};

Cell Text(const std::string& text);
Cell Integer(int64_t number);
Cell Bool(bool value);
// A decimal string in JSON, "$12.50" for people.
Cell Usd(int64_t nano_usd);
// null and the given words.
Cell None(const std::string& shown);
// RFC 3339 in JSON, to the second for people; 0 is None(zero).
Cell Time(int64_t unix_us, const std::string& zero);
// A list of texts; people see empty_shown when there is none.
Cell List(const std::vector<std::string>& texts, const std::string& empty_shown);
// A number where 0 means that there is no limit.
Cell Limit(int64_t number);

struct Column {
  std::string name;   // JSON member
  std::string title;  // heading for people
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void Add(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  // {"<list>": [ {…}, … ]}
  std::string ListAsJson(const std::string& list) const;
  // Aligned columns with headings, or the given sentence when there are no rows.
  std::string ListAsText(const std::string& when_empty) const;
  // The first row: one JSON object; one "title  value" line per column.
  std::string RecordAsJson() const;
  std::string RecordAsText() const;

 private:
  std::string RowAsJson(const std::vector<Cell>& row) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tollgate::cli
