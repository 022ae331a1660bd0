#include "gateway/surfaces/responses/responses_surface.h"

#include "gateway/surfaces/responses/answer.h"
#include "gateway/surfaces/responses/request.h"

namespace tollgate::gateway {

const Surface& ResponsesSurface() {
  static constexpr Surface surface{ParseResponsesRequest, MakeResponsesStreamEncoder,
                                   MakeResponsesFoldedAnswer};
  return surface;
}

}  // namespace tollgate::gateway
