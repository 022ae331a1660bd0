// How much a model reasons, in the members that each kind of engine understands. See
// docs/design/wire.md 2.6.
#pragma once

#include <string>

#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// Members of the engine request's JSON object, without braces; empty: none. The caller's own
// chat_template_kwargs are never among them.
std::string ReasoningMembers(catalog::v1::EngineKind kind,
                             const inference::v1::Reasoning& reasoning);

}  // namespace tollgate::inference_router
