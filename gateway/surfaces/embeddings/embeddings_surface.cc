#include "gateway/surfaces/embeddings/embeddings_surface.h"

#include "gateway/surfaces/embeddings/answer.h"
#include "gateway/surfaces/embeddings/request.h"

namespace tollgate::gateway {

namespace {

class EmbeddingsSurfaceImpl : public Surface {
 public:
  Result<CanonicalRequest> ParseRequest(const json::Document& body) const override {
    return ParseEmbeddingRequest(body);
  }
  // Never asked for: ParseEmbeddingRequest makes no request that streams.
  std::unique_ptr<StreamEncoder> MakeStreamEncoder(const CanonicalRequest&,
                                                   const AnswerStamp&) const override {
    return nullptr;
  }
  std::unique_ptr<FoldedAnswer> MakeFoldedAnswer(const CanonicalRequest& request,
                                                 const AnswerStamp&) const override {
    return MakeEmbeddingAnswer(request);
  }
};

}  // namespace

const Surface& EmbeddingsSurface() {
  static const EmbeddingsSurfaceImpl surface;
  return surface;
}

}  // namespace tollgate::gateway
