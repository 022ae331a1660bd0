// The header x-tollgate-debug: which engine answered, and why it was chosen. Only for operators,
// whose keys are listed in the configuration (GatewaySettings.debug_keys): other callers learn
// nothing about engines.
#pragma once

#include <string>

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

inline constexpr char kDebugHeader[] = "x-tollgate-debug";

// Whether the request asks for the header and its key may see it. Requires an authenticated
// request.
bool MayExplain(const RequestContext& context);

// Keeps the choice of an event for the header. Does nothing if the request may not have the header,
// even if the router sends the choice.
void RecordChoice(RequestContext& context, const inference::v1::Event& event);

}  // namespace tollgate::gateway
