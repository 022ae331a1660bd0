#include "services/inference_router/session/session_context.h"

namespace tollgate::inference_router {

int64_t SessionContext::UnseenTokens() const {
  const int64_t per_choice = request.max_tokens() > 0 ? request.max_tokens()
                             : route != nullptr       ? route->context_window
                                                      : 0;
  return (request.samples() - request.choices()) * per_choice;
}

}  // namespace tollgate::inference_router
