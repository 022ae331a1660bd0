// What both ends of the shared token stream (InferenceService.Link) agree on.
#pragma once

#include <cstdint>

namespace tollgate {

// What a router's End says in `internal` when it has not taken a request at all: nothing will be
// settled, so for the gateway the request counts as not sent. In a frame of stream 0 it tells that
// the router is stopping: no more requests, please.
inline constexpr char kLinkRefusal[] = "the inference router is stopping";

// Bytes of events that a router may send ahead of its receiver, per request. Both halves start with
// it.
inline constexpr int64_t kLinkWindowBytes = 256 * 1024;

}  // namespace tollgate
