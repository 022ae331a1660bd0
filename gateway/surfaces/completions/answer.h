// POST /v1/completions: the answer, as a stream of chunks and as one body.
#pragma once

#include <memory>

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

// spec: wire.md 3, decisions.md 23, 24.
std::unique_ptr<StreamEncoder> MakeCompletionStreamEncoder(const CanonicalRequest& request,
                                                           const AnswerStamp& stamp);
std::unique_ptr<FoldedAnswer> MakeCompletionFoldedAnswer(const CanonicalRequest& request,
                                                         const AnswerStamp& stamp);

}  // namespace tollgate::gateway
