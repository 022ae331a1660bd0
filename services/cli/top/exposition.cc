#include "services/cli/top/exposition.h"

#include <charconv>
#include <cmath>

namespace tollgate::cli {
namespace {

// Parses {a="x",b="y\"z"} from its brace on and moves `at` behind the closing brace. Returns false
// if the text is malformed.
bool ReadLabels(std::string_view line, size_t& at, Labels& labels) {
  ++at;
  while (at < line.size() && line[at] != '}') {
    const size_t equals = line.find('=', at);
    if (equals == std::string_view::npos || equals + 1 >= line.size()) return false;
    const std::string name(line.substr(at, equals - at));
    at = equals + 2;  // past the quote
    std::string value;
    while (at < line.size() && line[at] != '"') {
      if (line[at] == '\\' && at + 1 < line.size()) {
        ++at;
        value += line[at] == 'n' ? '\n' : line[at];
      } else {
        value += line[at];
      }
      ++at;
    }
    ++at;
    if (at < line.size() && line[at] == ',') ++at;
    labels[name] = std::move(value);
  }
  if (at >= line.size()) return false;
  ++at;
  return true;
}

double Number(std::string_view text) {
  if (text.starts_with("+Inf")) return INFINITY;
  double value = NAN;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Exposition Exposition::Parse(std::string_view text) {
  Exposition parsed;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string_view line = text.substr(from, end - from);
    from = end + 1;
    if (line.empty() || line[0] == '#') continue;
    size_t at = line.find_first_of("{ ");
    if (at == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, at);
    Series series;
    if (line[at] == '{' && !ReadLabels(line, at, series.labels)) continue;
    while (at < line.size() && line[at] == ' ') ++at;
    series.value = Number(line.substr(at));
    if (std::isnan(series.value)) continue;
    parsed.series_[std::string(name)].push_back(std::move(series));
  }
  return parsed;
}

const std::vector<Exposition::Series>& Exposition::Find(std::string_view name) const {
  static const std::vector<Series> none;
  const auto found = series_.find(name);
  return found == series_.end() ? none : found->second;
}

double Exposition::Sum(std::string_view name,
                       const std::function<bool(const Labels&)>& takes) const {
  double sum = 0;
  for (const Series& series : Find(name)) {
    if (!takes || takes(series.labels)) sum += series.value;
  }
  return sum;
}

}  // namespace tollgate::cli
