// Constants shared by client and server of the token stream (InferenceService.Link).
#pragma once

#include <cstdint>

namespace tollgate {

// `internal` of the End of a request that the router refused because it is draining. The router
// does not settle it, so the gateway treats the request as not sent. In a frame of stream 0 it asks
// the gateway to send no more requests on the link.
inline constexpr char kLinkRefusal[] = "the inference router is stopping";

// Initial window per request: bytes of events that a router may send ahead of the receiver.
inline constexpr int64_t kLinkWindowBytes = 256 * 1024;

}  // namespace tollgate
