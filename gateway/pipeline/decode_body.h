// Stage: a request body with a content coding, decoded. After authentication: a caller without a
// valid key makes the gateway decode nothing (decision 46).
#pragma once

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Whether the body is not as it was written: it has a Content-Encoding other than identity.
bool IsCoded(const HttpRequest& request);

// Replaces the body by the decoded one, and counts its memory in context.body_memory. Fails with
// 400 for anything but one of gzip, zstd and br, for a body that is malformed, above the size
// limit or expands too much; with 503 while memory is short or too many bodies wait to be decoded.
// Small bodies are decoded on the loop, others in pieces on the worker's pool.
Task<Result<void>> DecodeBody(RequestContext& context);

}  // namespace tollgate::gateway
