// POST /v1/responses: encoders of the streamed response and of the single body.
#pragma once

#include <memory>

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

// Both expect a ResponsesState as the request's state.
// See docs/design/wire.md 5.3, 7.4, decisions 4, 23, 24, 27.
std::unique_ptr<StreamEncoder> MakeResponsesStreamEncoder(const CanonicalRequest& request,
                                                          const ResponseStamp& stamp);
// See docs/design/wire.md 5.2.
std::unique_ptr<BodyEncoder> MakeResponsesBodyEncoder(const CanonicalRequest& request,
                                                      const ResponseStamp& stamp);

}  // namespace tollgate::gateway
