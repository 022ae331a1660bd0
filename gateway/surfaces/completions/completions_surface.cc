#include "gateway/surfaces/completions/completions_surface.h"

#include "gateway/surfaces/completions/encoders.h"
#include "gateway/surfaces/completions/request.h"

namespace tollgate::gateway {

const Surface& CompletionsSurface() {
  static constexpr Surface surface{
      [](const json::Document& body, const ParseContext&) { return ParseCompletionRequest(body); },
      MakeCompletionStreamEncoder, MakeCompletionBodyEncoder};
  return surface;
}

}  // namespace tollgate::gateway
