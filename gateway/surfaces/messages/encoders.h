// POST /v1/messages: encoders of the streamed response and of the single body.
#pragma once

#include <memory>

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

// See docs/design/wire.md 6.3, 7.2, 7.4, decisions 23, 24, 28.
std::unique_ptr<StreamEncoder> MakeMessagesStreamEncoder(const CanonicalRequest& request,
                                                         const ResponseStamp& stamp);
// See docs/design/wire.md 6.2, 7.2.
std::unique_ptr<BodyEncoder> MakeMessagesBodyEncoder(const CanonicalRequest& request,
                                                     const ResponseStamp& stamp);

}  // namespace tollgate::gateway
