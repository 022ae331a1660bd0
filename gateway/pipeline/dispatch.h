// Stage: hands the request to an inference router.
#pragma once

#include <cstddef>

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Larger requests are not kept for another router, because a copy would double the memory of large
// bodies.
inline constexpr size_t kMaxMovedBytes = 64 << 10;

// Sets context.generation. Failures arrive with the first event (relay.h).
void Dispatch(RequestContext& context);

// Sends the request again with the context's current model, attempt and authorization. Requires
// context.movable, which is kept only while another attempt is possible.
void SendAgain(RequestContext& context);

}  // namespace tollgate::gateway
