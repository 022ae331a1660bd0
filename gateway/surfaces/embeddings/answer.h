// POST /v1/embeddings: the answer.
#pragma once

#include <memory>

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

// spec: wire.md 4.
std::unique_ptr<FoldedAnswer> MakeEmbeddingAnswer(const CanonicalRequest& request,
                                                  const AnswerStamp& stamp);

}  // namespace tollgate::gateway
