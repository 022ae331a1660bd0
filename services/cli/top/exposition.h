// Metrics in Prometheus's text form, as /metrics of a process has them.
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

  // Lines that are no sample are passed over.
  static Exposition Parse(std::string_view text);

  // Of this name; empty when there are none.
  const std::vector<Series>& Find(std::string_view name) const;
  // Of all its series that the function takes.
  double Sum(std::string_view name,
             const std::function<bool(const Labels&)>& takes = nullptr) const;
  bool Has(std::string_view name) const { return !Find(name).empty(); }

 private:
  std::map<std::string, std::vector<Series>, std::less<>> series_;
};

}  // namespace tollgate::cli
