#include "gateway/surfaces/responses/responses_surface.h"

#include "gateway/surfaces/responses/encoders.h"
#include "gateway/surfaces/responses/request.h"

namespace tollgate::gateway {

const Surface& ResponsesSurface() {
  static constexpr Surface surface{ParseResponsesRequest, MakeResponsesStreamEncoder,
                                   MakeResponsesBodyEncoder};
  return surface;
}

}  // namespace tollgate::gateway
