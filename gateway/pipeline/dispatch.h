// Stage: hands the request to an inference router.
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Sets context.generation. Failures arrive with the first event (relay.h).
void Dispatch(RequestContext& context);

// The same for another try, by what the context says now: its model, its attempt and its
// authorization. Requires context.movable, which is kept only while a further try is possible.
void SendAgain(RequestContext& context);

}  // namespace tollgate::gateway
