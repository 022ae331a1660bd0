// Reading the members of a request, as GenerateRequest has them: without the braces.
#pragma once

#include <string>
#include <string_view>

#include "common/json/json.h"

namespace tollgate::inference_router {

// The object of these members. The gateway has parsed them: what its limits let through is taken
// here, too.
inline BasicResult<json::Document, json::ParseError> ParseMembers(std::string_view members) {
  json::Limits limits;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  limits.max_values = 2'000'000;
  return json::Document::Parse("{" + std::string(members) + "}", limits);
}

}  // namespace tollgate::inference_router
