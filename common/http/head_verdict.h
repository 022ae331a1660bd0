// Result of checking a request's head before its body is read (decision 46).
#pragma once

#include <optional>

#include "common/http/exchange.h"
#include "common/runtime/task.h"

namespace tollgate::http {

struct HeadVerdict {
  // Set if refused: the response. The body is discarded unread, and the connection is closed.
  std::optional<HttpResponse> refusal;
  // Set if undecided, for example because a key must be looked up. Returns the refusal, if any. The
  // connection reads nothing until then. May refer to the request.
  std::optional<Task<std::optional<HttpResponse>>> pending;
  // Accepted without a credential. Until the body has arrived, the connection counts as idle, so
  // that it can be closed for another one.
  bool without_credential = false;
};

}  // namespace tollgate::http
