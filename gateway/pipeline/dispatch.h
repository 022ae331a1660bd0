// Stage: hands the request to an inference router.
#pragma once

#include <cstddef>

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// A larger request is not kept for another router: it would double the memory of large bodies.
inline constexpr size_t kMaxMovedBytes = 64 << 10;

// Sets context.generation. Failures arrive with the first event (relay.h).
void Dispatch(RequestContext& context);

// The same for another try, by what the context says now: its model, its attempt and its
// authorization. Requires context.movable, which is kept only while a further try is possible.
void SendAgain(RequestContext& context);

}  // namespace tollgate::gateway
