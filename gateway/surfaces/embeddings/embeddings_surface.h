// POST /v1/embeddings. See docs/design/wire.md 4.
#pragma once

#include "gateway/pipeline/surface.h"

namespace tollgate::gateway {

const Surface& EmbeddingsSurface();

}  // namespace tollgate::gateway
