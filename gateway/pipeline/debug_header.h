// The header x-tollgate-debug: which engine answered, and why it was chosen. For operators only, by
// keys that the configuration names (GatewaySettings.debug_keys): nobody else learns of engines.
#pragma once

#include <string>

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

inline constexpr char kDebugHeader[] = "x-tollgate-debug";

// The request asks for it, and its key may have it. Of an authenticated request.
bool MayExplain(const RequestContext& context);

// Keeps what an event says of the choice, for the header. Does nothing for a request that may not
// have it, whatever the router says.
void RecordChoice(RequestContext& context, const inference::v1::Event& event);

}  // namespace tollgate::gateway
