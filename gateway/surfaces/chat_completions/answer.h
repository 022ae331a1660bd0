// POST /v1/chat/completions: the answer, as a stream of chunks and as one body.
#pragma once

#include <memory>

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

// spec: wire.md 2.3 to 2.5, decisions.md 23, 24, 31.
std::unique_ptr<StreamEncoder> MakeChatStreamEncoder(const CanonicalRequest& request,
                                                     const AnswerStamp& stamp);
// spec: wire.md 2.2, 2.5.
std::unique_ptr<FoldedAnswer> MakeChatFoldedAnswer(const CanonicalRequest& request,
                                                   const AnswerStamp& stamp);

}  // namespace tollgate::gateway
