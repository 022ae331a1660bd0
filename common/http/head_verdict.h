// What the head of a request says before its body is read (decision 46).
#pragma once

#include <optional>

#include "common/http/exchange.h"
#include "common/runtime/task.h"

namespace tollgate::http {

struct HeadVerdict {
  // Set: the response. The body is discarded unread, and the connection closed.
  std::optional<HttpResponse> refusal;
  // Set: not decided yet, for example because a key must be looked up. Returns the refusal, if any.
  // Until then nothing more is read from the connection. It may refer to the request.
  std::optional<Task<std::optional<HttpResponse>>> pending;
  // Accepted without a credential: until the body is here, the connection counts as idle, so that
  // it can be closed to make room.
  bool without_credential = false;
};

}  // namespace tollgate::http
