// Writes the reasoning settings with the members that each kind of engine understands. See
// docs/design/wire.md 2.6.
#pragma once

#include <string>

#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// Members for the engine request's JSON object, without braces; empty: none. They never include the
// caller's own chat_template_kwargs.
std::string ReasoningMembers(catalog::v1::EngineKind kind,
                             const inference::v1::Reasoning& reasoning);

}  // namespace tollgate::inference_router
