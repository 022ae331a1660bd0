// Translates the member `response_format` for the kind of engine (docs/design/wire.md 10.2). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// members: the members of a request, as in GenerateRequest. Empty if they can be sent unchanged.
// For kinds that require a schema as `value` (TGI). A format that already has this form, or an
// unknown form, is unchanged.
std::optional<std::string> FitResponseFormat(catalog::v1::EngineKind kind,
                                             std::string_view members);

}  // namespace tollgate::inference_router
