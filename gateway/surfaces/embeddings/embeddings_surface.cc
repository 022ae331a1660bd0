#include "gateway/surfaces/embeddings/embeddings_surface.h"

#include "gateway/surfaces/embeddings/body_encoder.h"
#include "gateway/surfaces/embeddings/request.h"

namespace tollgate::gateway {

const Surface& EmbeddingsSurface() {
  // Embeddings are not streamed.
  static constexpr Surface surface{
      [](const json::Document& body, const ParseContext&) { return ParseEmbeddingRequest(body); },
      nullptr, MakeEmbeddingBodyEncoder};
  return surface;
}

}  // namespace tollgate::gateway
