// Why a request failed, kept with it for the access log and its trace. A request that succeeds
// keeps nothing.
#pragma once

#include <string>
#include <string_view>

#include "common/error/error.h"
#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

struct RequestFailure {
  const ErrorRow* error = nullptr;  // null: the request has not failed
  Reason reason = Reason::kNone;
  // The caller's key; empty: none was found.
  std::string key_id;
  std::string workspace_id;
};

// Call when the request is refused, or when its stream breaks.
void NoteFailure(HttpRequest& request, const Error& error);
// Call when the request may fail and its key is known. Does not mean that it has failed.
void NoteCaller(HttpRequest& request, std::string_view key_id, std::string_view workspace_id);
// An empty one if the request has not failed.
const RequestFailure& FailureOf(const HttpRequest& request);

}  // namespace tollgate::gateway
