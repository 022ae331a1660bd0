// Metrics in Prometheus's text format, as a process's /metrics returns them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate::cli {

using Labels = std::map<std::string, std::string, std::less<>>;

class Exposition {
 public:
  struct Series {
    Labels labels;
    double value = 0;
  };

  // Skips lines that are not samples.
  static Exposition Parse(std::string_view text);

  // Series with this name; empty if there are none.
  const std::vector<Series>& Find(std::string_view name) const;
  // Sum over the series that `takes` accepts.
  double Sum(std::string_view name,
             const std::function<bool(const Labels&)>& takes = nullptr) const;
  bool Has(std::string_view name) const { return !Find(name).empty(); }

 private:
  std::map<std::string, std::vector<Series>, std::less<>> series_;
};

}  // namespace tollgate::cli
