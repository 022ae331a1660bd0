#include "services/cli/table.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/base/utc_text.h"
#include "common/json/writer.h"
#include "common/money/money.h"

namespace tollgate::cli {
namespace {

// Display width, approximated by the number of code points.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

void AppendPadded(std::string& out, const std::string& text, size_t width, bool right) {
  const std::string padding(width - std::min(width, Width(text)), ' ');
  out += right ? padding + text : text + padding;
}

}  // namespace

Cell Text(const std::string& text) {
  // Texts may contain escape sequences, which must not reach the terminal.
  return {json::Quoted(text), WithoutInvisible(text, '?')};
}

Cell Integer(int64_t number) { return {std::to_string(number), std::to_string(number), true}; }

Cell Bool(bool value) { return {value ? "true" : "false", value ? "yes" : "no"}; }

Cell Usd(int64_t nano_usd) {
  const std::string exact = NanoToDecimalUsd(nano_usd);
  // The text form has at least two decimals and drops none.
  std::string shown = exact.starts_with('-') ? "-$" + exact.substr(1) : "$" + exact;
  const size_t point = shown.find('.');
  if (point == std::string::npos) {
    shown += ".00";
  } else if (shown.size() - point == 2) {
    shown += "0";
  }
  return {json::Quoted(exact), shown, true};
}

Cell None(const std::string& shown) { return {"null", shown}; }

Cell Time(int64_t unix_us, const std::string& zero) {
  if (unix_us == 0) return None(zero);
  const std::string text = UtcText(unix_us, UtcPrecision::kSeconds);
  std::string shown = text.substr(0, text.size() - 1);  // without the "Z"
  shown[shown.find('T')] = ' ';
  return {json::Quoted(text), shown};
}

Cell List(const std::vector<std::string>& texts, const std::string& empty_shown) {
  std::string shown;
  for (const std::string& text : texts) {
    shown += (shown.empty() ? "" : ", ") + WithoutInvisible(text, '?');
  }
  const auto quote = [](const std::string& text) { return json::Quoted(text); };
  return {json::WriteArray(texts, quote), texts.empty() ? empty_shown : shown};
}

Cell Limit(int64_t number) { return number == 0 ? Cell{"null", "-", true} : Integer(number); }

std::string Table::RowAsJson(const std::vector<Cell>& row) const {
  json::Writer writer;
  for (size_t i = 0; i < columns_.size(); ++i) writer.Raw(columns_[i].name, row[i].json);
  return writer.Done();
}

std::string Table::RowsAsJson() const {
  return json::WriteArray(rows_, [this](const std::vector<Cell>& row) { return RowAsJson(row); });
}

std::string Table::ListAsJson(const std::string& list, const Counts& counts) const {
  json::Writer writer;
  for (const auto& [name, count] : counts) writer.Raw(name, std::to_string(count));
  return writer.Raw(list, RowsAsJson()).Done() + "\n";
}

std::string Table::ListAsText(const std::string& when_empty) const {
  if (rows_.empty()) return when_empty + "\n";
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = Width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, Width(row[i].shown));
    widths.push_back(width);
  }
  std::string out;
  const auto end_line = [&out] {
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  };
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (i > 0) out += "  ";
    AppendPadded(out, columns_[i].title, widths[i], rows_[0][i].right);
  }
  end_line();
  for (const auto& row : rows_) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) out += "  ";
      AppendPadded(out, row[i].shown, widths[i], row[i].right);
    }
    end_line();
  }
  return out;
}

std::string Table::RecordAsJson() const { return RowAsJson(rows_.at(0)) + "\n"; }

std::string Table::RecordAsText() const {
  size_t width = 0;
  for (const Column& column : columns_) width = std::max(width, Width(column.title));
  std::string out;
  for (size_t i = 0; i < columns_.size(); ++i) {
    AppendPadded(out, columns_[i].title, width, false);
    out += "  " + rows_.at(0)[i].shown + "\n";
  }
  return out;
}

}  // namespace tollgate::cli
