#include "gateway/surfaces/messages/messages_surface.h"

namespace tollgate::gateway {

namespace {

class MessagesSurfaceImpl : public Surface {
 public:
  Result<CanonicalRequest> ParseRequest(const json::Document&) const override {
    return Internal("the Messages surface is not there yet");
  }
  std::unique_ptr<StreamEncoder> MakeStreamEncoder(const CanonicalRequest&,
                                                   const AnswerStamp&) const override {
    return nullptr;
  }
  std::unique_ptr<FoldedAnswer> MakeFoldedAnswer(const CanonicalRequest&,
                                                 const AnswerStamp&) const override {
    return nullptr;
  }
};

}  // namespace

const Surface& MessagesSurface() {
  static const MessagesSurfaceImpl surface;
  return surface;
}

const Surface& CountTokensSurface() {
  static const MessagesSurfaceImpl surface;
  return surface;
}

}  // namespace tollgate::gateway
