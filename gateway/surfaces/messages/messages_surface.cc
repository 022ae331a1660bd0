#include "gateway/surfaces/messages/messages_surface.h"

#include "gateway/surfaces/messages/answer.h"
#include "gateway/surfaces/messages/request.h"

namespace tollgate::gateway {

namespace {

class MessagesSurfaceImpl : public Surface {
 public:
  explicit MessagesSurfaceImpl(bool needs_max_tokens) : needs_max_tokens_(needs_max_tokens) {}

  Result<CanonicalRequest> ParseRequest(const json::Document& body) const override {
    return ParseMessagesRequest(body, needs_max_tokens_);
  }
  std::unique_ptr<StreamEncoder> MakeStreamEncoder(const CanonicalRequest& request,
                                                   const AnswerStamp& stamp) const override {
    return MakeMessagesStreamEncoder(request, stamp);
  }
  std::unique_ptr<FoldedAnswer> MakeFoldedAnswer(const CanonicalRequest& request,
                                                 const AnswerStamp& stamp) const override {
    return MakeMessagesFoldedAnswer(request, stamp);
  }

 private:
  const bool needs_max_tokens_;
};

}  // namespace

const Surface& MessagesSurface() {
  static const MessagesSurfaceImpl surface(/*needs_max_tokens=*/true);
  return surface;
}

const Surface& CountTokensSurface() {
  static const MessagesSurfaceImpl surface(/*needs_max_tokens=*/false);
  return surface;
}

}  // namespace tollgate::gateway
