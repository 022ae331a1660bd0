#include "gateway/surfaces/responses/responses_surface.h"

#include "gateway/surfaces/responses/answer.h"
#include "gateway/surfaces/responses/request.h"

namespace tollgate::gateway {

namespace {

class ResponsesSurfaceImpl : public Surface {
 public:
  Result<CanonicalRequest> ParseRequest(const json::Document& body) const override {
    return ParseResponsesRequest(body);
  }
  std::unique_ptr<StreamEncoder> MakeStreamEncoder(const CanonicalRequest& request,
                                                   const AnswerStamp& stamp) const override {
    return MakeResponsesStreamEncoder(request, stamp);
  }
  std::unique_ptr<FoldedAnswer> MakeFoldedAnswer(const CanonicalRequest& request,
                                                 const AnswerStamp& stamp) const override {
    return MakeResponsesFoldedAnswer(request, stamp);
  }
};

}  // namespace

const Surface& ResponsesSurface() {
  static const ResponsesSurfaceImpl surface;
  return surface;
}

}  // namespace tollgate::gateway
