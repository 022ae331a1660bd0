// The column `quota_keys` of holds: the keys that share the quota, one id per line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tollgate::billing {

inline constexpr std::string_view kQuotaKeysColumn = R"sql(
ALTER TABLE hold ADD COLUMN quota_keys {text} NOT NULL DEFAULT '';
)sql";

inline std::string EncodeQuotaKeys(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : "\n") + key;
  return text;
}

inline std::vector<std::string> DecodeQuotaKeys(std::string_view text) {
  std::vector<std::string> keys;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    keys.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return keys;
}

}  // namespace tollgate::billing
