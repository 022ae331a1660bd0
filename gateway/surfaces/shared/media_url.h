// URLs of images and other media in a prompt. The gateway never fetches them, but engines do, from
// inside the operator's network. So only https: and data: URLs are forwarded, and ambiguous forms,
// which two parsers could read differently, are refused (H67, decision 45).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/json/json.h"

namespace tollgate::gateway {

struct MediaUrl {
  // Lower case, without port; an IPv6 address in brackets. Empty for a data: URL.
  std::string host;
};

// url: the contents of a JSON string. Returns nullopt if the URL must not be forwarded. Does not
// check the data of a data: URL.
std::optional<MediaUrl> ParseMediaUrl(std::string_view url);

// Problems of a content part with media, shown to the client after the name of the part.
inline constexpr std::string_view kBadMediaUrl = " must be an https: or data: URL.";

// Checks every URL in a chat content part, whatever the part's type: engines accept URLs under
// several names. Adds the hosts of https: URLs. Returns the problem, or empty text.
std::string CheckMediaPart(json::Value part, std::set<std::string>& hosts);

// Whether a content part has a media member, whatever its type says.
bool HasMediaMember(json::Value part);

}  // namespace tollgate::gateway
