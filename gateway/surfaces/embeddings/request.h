// POST /v1/embeddings: the request.
#pragma once

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"
#include "gateway/surfaces/embeddings/vectors.h"

namespace tollgate::gateway {

struct EmbeddingState : SurfaceState {
  VectorForm form = VectorForm::kFloats;
};

Result<CanonicalRequest> ParseEmbeddingRequest(const json::Document& body);

}  // namespace tollgate::gateway
