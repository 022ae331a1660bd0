#include "gateway/surfaces/messages/messages_surface.h"

#include "gateway/surfaces/messages/encoders.h"
#include "gateway/surfaces/messages/request.h"

namespace tollgate::gateway {

namespace {

template <MessagesPurpose kPurpose>
Result<CanonicalRequest> Parse(const json::Document& body, const ParseContext& context) {
  return ParseMessagesRequest(body, kPurpose, context);
}

}  // namespace

const Surface& MessagesSurface() {
  static constexpr Surface surface{Parse<MessagesPurpose::kGenerate>, MakeMessagesStreamEncoder,
                                   MakeMessagesBodyEncoder};
  return surface;
}

const Surface& CountTokensSurface() {
  static constexpr Surface surface{Parse<MessagesPurpose::kCount>, nullptr, nullptr};
  return surface;
}

}  // namespace tollgate::gateway
