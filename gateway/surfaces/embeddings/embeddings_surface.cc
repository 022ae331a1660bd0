#include "gateway/surfaces/embeddings/embeddings_surface.h"

#include "gateway/surfaces/embeddings/answer.h"
#include "gateway/surfaces/embeddings/request.h"

namespace tollgate::gateway {

const Surface& EmbeddingsSurface() {
  // An embedding is one body: no request streams.
  static constexpr Surface surface{ParseEmbeddingRequest, nullptr, MakeEmbeddingAnswer};
  return surface;
}

}  // namespace tollgate::gateway
