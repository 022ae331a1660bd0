#include "gateway/surfaces/chat_completions/chat_surface.h"

#include "gateway/surfaces/chat_completions/chunks.h"
#include "gateway/surfaces/chat_completions/request.h"

namespace tollgate::gateway {

namespace {

class ChatSurfaceImpl : public Surface {
 public:
  Result<CanonicalRequest> ParseRequest(const json::Document& body) const override {
    return ParseChatRequest(body);
  }
  std::unique_ptr<StreamEncoder> MakeStreamEncoder(const CanonicalRequest& request,
                                                   const AnswerStamp& stamp) const override {
    return MakeChatStreamEncoder(request, stamp);
  }
  std::unique_ptr<FoldedAnswer> MakeFoldedAnswer(const CanonicalRequest& request,
                                                 const AnswerStamp& stamp) const override {
    return MakeChatFoldedAnswer(request, stamp);
  }
};

}  // namespace

const Surface& ChatSurface() {
  static const ChatSurfaceImpl surface;
  return surface;
}

}  // namespace tollgate::gateway
