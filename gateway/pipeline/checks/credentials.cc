#include "gateway/pipeline/checks/credentials.h"

#include <vector>

#include "common/keys/key_format.h"

namespace tollgate::gateway {

namespace {

Fail<Error> Malformed(std::string message) {
  return FailWith(ErrorId::kInvalidApiKey, Reason::kMalformedKey, std::move(message));
}

// The token after "Bearer " (case-insensitive); empty for another scheme.
std::string_view BearerToken(std::string_view header) {
  constexpr std::string_view kScheme = "bearer";
  if (header.size() <= kScheme.size()) return {};
  for (size_t i = 0; i < kScheme.size(); ++i) {
    if ((header[i] | 0x20) != kScheme[i]) return {};
  }
  header.remove_prefix(kScheme.size());
  if (header.front() != ' ') return {};
  const size_t begin = header.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  const size_t end = header.find_last_not_of(' ');
  return header.substr(begin, end - begin + 1);
}

}  // namespace

Result<std::string_view> FindKey(const HttpRequest& request, CredentialRule rule,
                                 std::string_view brand,
                                 std::span<const std::string> legacy_prefixes) {
  bool any_credential = false;
  int authorizations = 0;
  std::string_view found;
  for (const auto& [name, value] : request.headers) {
    std::string_view token;
    if (name == "authorization") {
      any_credential = true;
      // Ambiguous: proxies and servers differ in which header they use.
      if (++authorizations > 1) return Malformed("More than one Authorization header was sent.");
      token = BearerToken(value);
    } else if (name == "x-api-key" && rule == CredentialRule::kBearerOrApiKey) {
      any_credential = true;
      token = value;
    }
    if (token.empty() || !ParseKey(token, brand, legacy_prefixes)) continue;
    if (!found.empty() && found != token) return Malformed("Two different API keys were sent.");
    found = token;
  }
  if (!found.empty()) return found;
  if (any_credential) return Malformed("The API key is malformed or unknown.");
  return FailWith(ErrorId::kInvalidApiKey, Reason::kNoKey,
                  rule == CredentialRule::kBearerOrApiKey
                      ? "No API key was sent: use the header x-api-key or Authorization: Bearer."
                      : "No API key was sent: use the header Authorization: Bearer <API_KEY>.");
}

}  // namespace tollgate::gateway
