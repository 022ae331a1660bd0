// The member `response_format` in the words of an engine (docs/design/wire.md 10.2). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// members: of a request, as in GenerateRequest. Empty if they can be sent as they are. TGI knows
// neither `json_schema` nor a bare `json_object`: it wants a schema as `value`. A format that is in
// TGI's words already, or in none that is known, stays.
std::optional<std::string> FitResponseFormat(catalog::v1::EngineKind kind,
                                             std::string_view members);

}  // namespace tollgate::inference_router
