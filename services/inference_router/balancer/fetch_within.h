// A call to an engine whose whole time is bounded: an engine may send a byte now and then, for ever
// (H75).
#pragma once

#include "common/http/client.h"

namespace tollgate::inference_router {

// Client::Fetch, with a bound of the whole call, connection included; kTimeout when it is over.
// client outlives the call.
Task<http::ClientResult<http::WholeResponse>> FetchWithin(Loop& loop, http::Client& client,
                                                          http::ClientRequest request,
                                                          size_t max_body_bytes, int64_t total_ms);

}  // namespace tollgate::inference_router
