// Reads the heads of answers. Internal to common/http.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/http/client.h"

namespace tollgate::http {

// How the body of an answer ends, and whether its connection may be used again.
struct ResponseFraming {
  enum class Body { kNone, kCounted, kChunked, kUntilClose };
  Body body = Body::kNone;
  uint64_t content_length = 0;
  bool keep_alive = true;
};

// The size of the head at the beginning of these bytes, its empty line included; 0 when it has not
// ended. searched: where to go on looking, kept by the caller from call to call.
size_t FindHeadEnd(std::string_view bytes, size_t* searched);

// head: as delimited by FindHeadEnd. Null when it is good, else what is wrong with it.
const char* ParseResponseHead(std::string_view head, bool to_head_request, ResponseHead* response,
                              ResponseFraming* framing);

}  // namespace tollgate::http
