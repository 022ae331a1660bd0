// Stage: decodes a request body with a content coding. Runs after authentication, so that a caller
// without a valid key cannot make the gateway decode anything (decision 46).
#pragma once

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// Whether the body is encoded: it has a Content-Encoding other than identity.
bool IsCoded(const HttpRequest& request);

// Replaces the body by the decoded one and reserves its memory in context.body_memory. Fails with
// 400 for a coding other than gzip, zstd and br, and for a body that is malformed, above the size
// limit or expands too much. Fails with 503 when memory is short or too many bodies wait to be
// decoded. Small bodies are decoded on the loop, larger ones in pieces on the worker's pool.
Task<Result<void>> DecodeBody(RequestContext& context);

}  // namespace tollgate::gateway
