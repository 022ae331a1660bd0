#include "services/cli/expiry.h"

#include <charconv>

#include "common/base/utc_text.h"

namespace tollgate::cli {
namespace {

constexpr int64_t kUsPerSecond = 1'000'000;
constexpr int64_t kLongestSeconds = int64_t{100} * 366 * 86400;

}  // namespace

std::optional<int64_t> ParseSpan(const std::string& text) {
  int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, count);
  if (problem != std::errc() || stop + 1 != end || count <= 0) return std::nullopt;
  const int64_t unit = *stop == 'd' ? 86400 : *stop == 'h' ? 3600 : *stop == 'm' ? 60 : 0;
  if (unit == 0 || count > kLongestSeconds / unit) return std::nullopt;
  return count * unit * kUsPerSecond;
}

std::optional<int64_t> ParseExpiry(const std::string& text, int64_t now_us) {
  if (text == "never") return 0;
  if (const auto span = ParseSpan(text)) return now_us + *span;
  const auto date = ParseUtcDate(text);
  const auto time = date ? date : ParseUtcSecond(text);
  if (!time || *time <= now_us) return std::nullopt;
  return time;
}

}  // namespace tollgate::cli
