// Reads the members of a request as they are in GenerateRequest: without the braces.
#pragma once

#include <string>
#include <string_view>

#include "common/json/json.h"

namespace tollgate::inference_router {

// Parses these members as an object. The gateway has parsed them before, so its limits are accepted
// here, too.
inline BasicResult<json::Document, json::ParseError> ParseMembers(std::string_view members) {
  json::Limits limits;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  limits.max_values = 2'000'000;
  return json::Document::Parse("{" + std::string(members) + "}", limits);
}

}  // namespace tollgate::inference_router
