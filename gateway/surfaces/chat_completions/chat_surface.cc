#include "gateway/surfaces/chat_completions/chat_surface.h"

#include "gateway/surfaces/chat_completions/answer.h"
#include "gateway/surfaces/chat_completions/request.h"

namespace tollgate::gateway {

const Surface& ChatSurface() {
  static constexpr Surface surface{ParseChatRequest, MakeChatStreamEncoder, MakeChatFoldedAnswer};
  return surface;
}

}  // namespace tollgate::gateway
