#include "gateway/surfaces/chat_completions/chat_surface.h"

#include "gateway/surfaces/chat_completions/encoders.h"
#include "gateway/surfaces/chat_completions/request.h"

namespace tollgate::gateway {

const Surface& ChatSurface() {
  static constexpr Surface surface{ParseChatRequest, MakeChatStreamEncoder, MakeChatBodyEncoder};
  return surface;
}

}  // namespace tollgate::gateway
