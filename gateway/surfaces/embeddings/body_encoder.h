// POST /v1/embeddings: encoder of the response body.
#pragma once

#include <memory>

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

// See docs/design/wire.md 4.
std::unique_ptr<BodyEncoder> MakeEmbeddingBodyEncoder(const CanonicalRequest& request,
                                                      const ResponseStamp& stamp);

}  // namespace tollgate::gateway
