#include "services/inference_router/balancer/engine_load.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "common/engines/kinds.h"

namespace tollgate::inference_router {
namespace {

// A load with more requests, or with more than the whole cache, is not valid.
constexpr double kMostRequests = 1e9;

// Returns the text after the labels, which may contain any character in quotes. Empty if the line
// is cut off.
std::string_view AfterLabels(std::string_view line) {
  if (!line.starts_with('{')) return line;
  bool quoted = false;
  for (size_t i = 1; i < line.size(); ++i) {
    if (quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == '}' && !quoted) {
      return line.substr(i + 1);
    }
  }
  return {};
}

// rest: the line after the name. Empty if a longer name begins with this one, or if the value is
// not a number from 0 to most.
std::optional<double> ValueOf(std::string_view rest, double most) {
  if (rest.empty() || (rest.front() != '{' && rest.front() != ' ')) return std::nullopt;
  rest = AfterLabels(rest);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (code != std::errc() || end == rest.data() || !(value >= 0 && value <= most)) {
    return std::nullopt;
  }
  return value;
}

struct Series {
  double sum = 0, largest = 0;
};

// The sum and maximum of all lines with this name; empty: there are none.
std::optional<Series> Find(std::string_view text, std::string_view name, double most) {
  std::optional<Series> found;
  if (name.empty()) return found;
  for (size_t at = 0; (at = text.find(name, at)) != std::string_view::npos; at += name.size()) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const std::string_view rest = text.substr(at + name.size());
    const auto value = ValueOf(rest.substr(0, rest.find('\n')), most);
    if (!value) continue;
    if (!found) found.emplace();
    found->sum += *value;
    found->largest = std::max(found->largest, *value);
  }
  return found;
}

}  // namespace

std::optional<EngineLoad> ReadLoad(catalog::v1::EngineKind kind, std::string_view metrics) {
  const engines::LoadGauges& names = engines::Of(kind).load;
  EngineLoad load;
  const auto running = Find(metrics, names.running, kMostRequests);
  const auto queued = Find(metrics, names.queued, kMostRequests);
  if (!running && !queued) return std::nullopt;
  if (running) load.running = static_cast<int64_t>(running->sum);
  if (queued) load.queued = static_cast<int64_t>(queued->sum);
  auto cache_use = Find(metrics, names.cache_use, 1);
  if (!cache_use) cache_use = Find(metrics, names.old_cache_use, 1);
  if (cache_use) load.cache_use = cache_use->largest;
  return load;
}

}  // namespace tollgate::inference_router
