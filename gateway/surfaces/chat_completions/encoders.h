// POST /v1/chat/completions: encoders of the streamed response and of the single body.
#pragma once

#include <memory>

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

// See docs/design/wire.md 2.3 to 2.5, decisions 23, 24, 31.
std::unique_ptr<StreamEncoder> MakeChatStreamEncoder(const CanonicalRequest& request,
                                                     const ResponseStamp& stamp);
// See docs/design/wire.md 2.2, 2.5.
std::unique_ptr<BodyEncoder> MakeChatBodyEncoder(const CanonicalRequest& request,
                                                 const ResponseStamp& stamp);

}  // namespace tollgate::gateway
