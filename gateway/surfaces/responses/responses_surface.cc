#include "gateway/surfaces/responses/responses_surface.h"

#include "gateway/surfaces/responses/encoders.h"
#include "gateway/surfaces/responses/request.h"

namespace tollgate::gateway {

namespace {

// The output limit is ignored because clients count to find out what fits.
Result<CanonicalRequest> ParseForCount(const json::Document& body, const ParseContext& context) {
  auto request = ParseResponsesRequest(body, context);
  if (request) request->max_tokens.reset();
  return request;
}

}  // namespace

const Surface& ResponsesSurface() {
  static constexpr Surface surface{ParseResponsesRequest, MakeResponsesStreamEncoder,
                                   MakeResponsesBodyEncoder};
  return surface;
}

const Surface& InputTokensSurface() {
  static constexpr Surface surface{ParseForCount, nullptr, nullptr};
  return surface;
}

}  // namespace tollgate::gateway
