#include "services/auth/domain/rules.h"

#include <algorithm>
#include <set>

#include "common/base/ascii.h"
#include "common/base/ip_network.h"
#include "common/base/text.h"
#include "common/base/workspace_id.h"

namespace tollgate::auth {
namespace {

constexpr size_t kMaxNameBytes = 100;
constexpr size_t kMaxRemarkBytes = 500;
constexpr size_t kMaxAllowedModels = 200;
constexpr size_t kMaxModelBytes = 200;
constexpr size_t kMaxAddresses = 100;
constexpr size_t kMaxLabels = 20;
constexpr size_t kMaxLabelName = 40;
// Far above any real limit, and small enough that no arithmetic on it overflows.
constexpr int64_t kMaxLimit = 1'000'000'000'000;
constexpr int64_t kMaxQuotaNanoUsd = 1'000'000'000'000'000'000;

bool IsModelWord(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return IsAlnum(c) || c == '.' || c == '_' || c == '-';
  });
}

// An id, or namespace/*.
bool IsModelPattern(std::string_view id) {
  const size_t slash = id.find('/');
  if (id.size() > kMaxModelBytes || slash == std::string_view::npos) return false;
  const std::string_view model = id.substr(slash + 1);
  return IsModelWord(id.substr(0, slash)) && (model == "*" || IsModelWord(model));
}

}  // namespace

Result<void> CheckWorkspaceId(std::string_view id) {
  if (IsWorkspaceId(id)) return {};
  return BadRequest("A workspace id is 1 to 63 lower-case letters, digits and inner hyphens.",
                    "workspace_id");
}

Result<void> CheckName(std::string_view name) {
  if (name.size() <= kMaxNameBytes && IsVisibleText(name)) return {};
  return BadRequest("A name is at most 100 bytes of text without control or invisible characters.",
                    "name");
}

Result<void> CheckLimits(const LimitValues& limits) {
  const auto check = [](int64_t value) { return value >= 0 && value <= kMaxLimit; };
  if (check(limits.requests_per_minute) && check(limits.tokens_per_minute) &&
      check(limits.concurrent_requests)) {
    return {};
  }
  return BadRequest("Limits are numbers from 0 (no limit) to 1000000000000.", "limits");
}

Result<void> CheckExpiry(int64_t expires_at_us, int64_t now_us) {
  if (expires_at_us == 0 || expires_at_us > now_us) return {};
  return BadRequest("The expiry must be in the future.", "expires_at");
}

Result<void> CheckAllowedModels(const std::vector<std::string>& models) {
  std::set<std::string_view> seen;
  for (const std::string& model : models) {
    if (!IsModelPattern(model)) {
      return BadRequest(
          "Every entry of allowed_models must have the form <namespace>/<model> or "
          "<namespace>/*.",
          "allowed_models");
    }
    if (!seen.insert(model).second) {
      return BadRequest("\"" + model + "\" is listed twice in allowed_models.", "allowed_models");
    }
  }
  if (models.size() <= kMaxAllowedModels) return {};
  return BadRequest("A key may list at most 200 models.", "allowed_models");
}

Result<void> CheckAllowedAddresses(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    if (IpNetwork::Parse(address)) continue;
    return BadRequest("\"" + ToValidUtf8(address, 60) +
                          "\" is neither an IP address nor a network such as 192.0.2.0/24.",
                      "allowed_addresses");
  }
  if (addresses.size() <= kMaxAddresses) return {};
  return BadRequest("A key may list at most 100 addresses and networks.", "allowed_addresses");
}

Result<void> CheckLabels(const std::map<std::string, std::string>& labels) {
  if (labels.size() > kMaxLabels) return BadRequest("A key has at most 20 labels.", "labels");
  for (const auto& [name, value] : labels) {
    const bool named = !name.empty() && name.size() <= kMaxLabelName &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return IsLower(c) || IsDigit(c) || c == '_' || c == '-';
                       });
    if (!named) {
      return BadRequest("The name of a label is 1 to 40 lower-case letters, digits, _ and -.",
                        "labels");
    }
    if (value.size() > kMaxNameBytes || !IsVisibleText(value)) {
      return BadRequest(
          "A label is at most 100 bytes of text without control or invisible characters.",
          "labels");
    }
  }
  return {};
}

Result<void> CheckQuota(int64_t quota_nano_usd) {
  if (quota_nano_usd >= 0 && quota_nano_usd <= kMaxQuotaNanoUsd) return {};
  return BadRequest("A monthly quota is 0 to 1000000000 USD.", "monthly_quota");
}

Result<void> CheckRemark(std::string_view text, std::string_view field) {
  if (text.size() <= kMaxRemarkBytes && IsVisibleText(text)) return {};
  return BadRequest("At most 500 bytes of text without control or invisible characters.",
                    std::string(field));
}

}  // namespace tollgate::auth
