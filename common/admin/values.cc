#include "common/admin/values.h"

#include <algorithm>

#include "common/base/workspace_id.h"
#include "common/money/money.h"

namespace tollgate::admin {
namespace {

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t slash = text.find('/');
    parts.push_back(text.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The ids that we create or accept have no other characters; the longest is an x-request-id.
bool IsId(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' ||
           c == '.';
  });
}

bool IsUsd(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  if (whole.empty() || !std::all_of(whole.begin(), whole.end(), IsDigit)) return false;
  if (whole.size() > 1 && whole.front() == '0') return false;
  if (dot == std::string_view::npos) return true;
  const std::string_view decimals = text.substr(dot + 1);
  return !decimals.empty() && decimals.size() <= 9 &&
         std::all_of(decimals.begin(), decimals.end(), IsDigit);
}

}  // namespace

std::optional<Parts> MatchName(std::string_view pattern, std::string_view name) {
  const auto wanted = Split(pattern);
  const auto given = Split(name);
  if (wanted.size() != given.size()) return std::nullopt;
  Parts parts;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != "*") {
      if (wanted[i] != given[i]) return std::nullopt;
      continue;
    }
    if (!IsId(given[i])) return std::nullopt;
    if (i > 0 && wanted[i - 1] == "workspaces" && !IsWorkspaceId(given[i])) return std::nullopt;
    parts.emplace_back(given[i]);
  }
  return parts;
}

AdminResult<Parts> NameParts(std::string_view pattern, std::string_view name,
                             std::string_view field) {
  if (auto parts = MatchName(pattern, name)) return *std::move(parts);
  return InvalidField(std::string(field), "the name must have the form " + std::string(pattern));
}

bool IsRequestId(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
  });
}

AdminResult<std::string> RequiredRequestId(std::string_view text, std::string_view field) {
  if (IsRequestId(text)) return std::string(text);
  return InvalidField(std::string(field), "a request_id of 1 to 64 of [A-Za-z0-9_-] is required");
}

AdminResult<int64_t> ParseUsd(std::string_view text, std::string_view field) {
  const auto nano_usd = IsUsd(text) ? ParseDecimalUsdToNano(text) : std::nullopt;
  if (nano_usd) return *nano_usd;
  return InvalidField(std::string(field),
                      "an amount in USD such as 5 or 0.25 is required, with at most 9 decimals");
}

std::string FormatUsd(int64_t nano_usd) {
  std::string text = NanoToDecimalUsd(nano_usd);
  const size_t dot = text.find('.');
  if (dot == std::string::npos) return text + ".00";
  if (text.size() - dot == 2) text += '0';
  return text;
}

}  // namespace tollgate::admin
