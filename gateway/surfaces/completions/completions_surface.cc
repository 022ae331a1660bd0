#include "gateway/surfaces/completions/completions_surface.h"

#include "gateway/surfaces/completions/answer.h"
#include "gateway/surfaces/completions/request.h"

namespace tollgate::gateway {

namespace {

class CompletionsSurfaceImpl : public Surface {
 public:
  Result<CanonicalRequest> ParseRequest(const json::Document& body) const override {
    return ParseCompletionRequest(body);
  }
  std::unique_ptr<StreamEncoder> MakeStreamEncoder(const CanonicalRequest& request,
                                                   const AnswerStamp& stamp) const override {
    return MakeCompletionStreamEncoder(request, stamp);
  }
  std::unique_ptr<FoldedAnswer> MakeFoldedAnswer(const CanonicalRequest& request,
                                                 const AnswerStamp& stamp) const override {
    return MakeCompletionFoldedAnswer(request, stamp);
  }
};

}  // namespace

const Surface& CompletionsSurface() {
  static const CompletionsSurfaceImpl surface;
  return surface;
}

}  // namespace tollgate::gateway
