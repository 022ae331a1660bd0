// Stage: hands the request to an inference router.
#pragma once

#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Sets context.generation. Failures arrive with the first event (relay.h).
void Dispatch(RequestContext& context);

// Sends the request again with the context's current model, attempt and authorization. Requires
// context.movable, which is kept only while another attempt is possible.
void SendAgain(RequestContext& context);

// Frees context.movable, because the request is not sent again.
void ForgetRequest(RequestContext& context);

}  // namespace tollgate::gateway
