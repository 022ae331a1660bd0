#include "gateway/surfaces/messages/messages_surface.h"

#include "gateway/surfaces/messages/answer.h"
#include "gateway/surfaces/messages/request.h"

namespace tollgate::gateway {

namespace {

class MessagesSurfaceImpl : public Surface {
 public:
  explicit MessagesSurfaceImpl(MessagesPurpose purpose) : purpose_(purpose) {}

  Result<CanonicalRequest> ParseRequest(const json::Document& body) const override {
    return ParseMessagesRequest(body, purpose_);
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
  const MessagesPurpose purpose_;
};

}  // namespace

const Surface& MessagesSurface() {
  static const MessagesSurfaceImpl surface(MessagesPurpose::kAnswer);
  return surface;
}

const Surface& CountTokensSurface() {
  static const MessagesSurfaceImpl surface(MessagesPurpose::kCount);
  return surface;
}

}  // namespace tollgate::gateway
