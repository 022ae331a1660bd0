#include "common/admin/filter.h"

#include <algorithm>

#include "common/base/utc_text.h"

namespace tollgate::admin {
namespace {

constexpr size_t kMaxFilter = 2048;

Fail<Failure> Malformed() {
  return InvalidField("filter",
                      "a filter is field = \"value\", field >= \"time\" or field < \"time\", "
                      "joined by AND");
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) { SkipSpaces(); }

  bool done() const { return rest_.empty(); }
  bool Take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    SkipSpaces();
    return true;
  }
  std::string Name() {
    size_t end = 0;
    while (end < rest_.size() && (rest_[end] == '_' || (rest_[end] >= 'a' && rest_[end] <= 'z'))) {
      ++end;
    }
    std::string name(rest_.substr(0, end));
    rest_.remove_prefix(end);
    SkipSpaces();
    return name;
  }
  // A text in double quotes; \" and \\ are escapes.
  bool Quoted(std::string& value) {
    if (!rest_.starts_with('"')) return false;
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        SkipSpaces();
        return true;
      }
      if (rest_[i] == '\\' && ++i == rest_.size()) return false;
      value += rest_[i];
    }
    return false;
  }

 private:
  void SkipSpaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

bool Has(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

AdminResult<std::vector<FilterTerm>> ParseFilter(std::string_view text,
                                                 std::span<const std::string_view> texts,
                                                 std::span<const std::string_view> times) {
  std::vector<FilterTerm> terms;
  if (text.size() > kMaxFilter) return Malformed();
  Scanner scan(text);
  while (!scan.done()) {
    if (!terms.empty() && !scan.Take("AND ")) return Malformed();
    FilterTerm term;
    term.field = scan.Name();
    const bool is_time = Has(times, term.field);
    if (!is_time && !Has(texts, term.field)) {
      return InvalidField("filter", "there is no field \"" + term.field + "\" to filter by");
    }
    if (scan.Take(">=")) {
      term.op = FilterTerm::Op::kAtLeast;
    } else if (scan.Take("<")) {
      term.op = FilterTerm::Op::kBefore;
    } else if (!scan.Take("=")) {
      return Malformed();
    }
    if (is_time == (term.op == FilterTerm::Op::kEquals)) {
      return InvalidField("filter", "the field " + term.field + " is compared by " +
                                        (is_time ? ">= and < only" : "= only"));
    }
    if (!scan.Quoted(term.value)) return Malformed();
    for (const FilterTerm& earlier : terms) {
      if (earlier.field == term.field && earlier.op == term.op) {
        return InvalidField("filter", "the filter compares " + term.field + " twice");
      }
    }
    terms.push_back(std::move(term));
  }
  return terms;
}

AdminResult<int64_t> FilterTime(const FilterTerm& term) {
  if (const auto us = ParseUtc(term.value)) return *us;
  return InvalidField(
      "filter", "\"" + term.value + "\" is not a time such as 2026-11-01T00:00:00Z or 2026-11-01");
}

}  // namespace tollgate::admin
