// POST /v1/completions: encoders of the streamed response and of the single body.
#pragma once

#include <memory>

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

// See docs/design/wire.md 3, decisions 23, 24.
std::unique_ptr<StreamEncoder> MakeCompletionStreamEncoder(const CanonicalRequest& request,
                                                           const ResponseStamp& stamp);
std::unique_ptr<BodyEncoder> MakeCompletionBodyEncoder(const CanonicalRequest& request,
                                                       const ResponseStamp& stamp);

}  // namespace tollgate::gateway
