// URLs of images and other media in a prompt. The gateway never fetches one, but an engine does,
// from inside the operator's network: only https: and data: URLs reach it, and doubtful forms,
// which two parsers could read differently, are refused (H67, decision 45).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/json/json.h"

namespace tollgate::gateway {

struct MediaUrl {
  // In lower case, without port; an IPv6 address in brackets. Empty: a data: URL.
  std::string host;
};

// url: the contents of a JSON string. Empty: the URL must not be forwarded. The data of a data: URL
// is not looked at.
std::optional<MediaUrl> ParseMediaUrl(std::string_view url);

// Problems of a content part with media; for the client, behind the name of the part.
inline constexpr std::string_view kBadMediaUrl = " must be an https: or data: URL.";

// Checks every URL in a chat content part, whatever the part's type is: engines take URLs under
// several names. Adds the hosts of https: URLs. Returns the problem; empty if there is none.
std::string CheckMediaPart(json::Value part, std::set<std::string>& hosts);

// Whether a content part has a member with media, whatever its type says.
bool HasMediaMember(json::Value part);

}  // namespace tollgate::gateway
