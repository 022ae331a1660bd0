// A call to an engine with a time limit on the whole call, because an engine may send single bytes
// forever (H75).
#pragma once

#include "common/http/client.h"

namespace tollgate::inference_router {

// Client::Fetch with a limit on the whole call, including the connection. Fails with kTimeout when
// it is exceeded. client must outlive the call.
Task<http::ClientResult<http::WholeResponse>> FetchWithin(Loop& loop, http::Client& client,
                                                          http::ClientRequest request,
                                                          size_t max_body_bytes, int64_t total_ms);

}  // namespace tollgate::inference_router
