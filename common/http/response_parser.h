// Parses the heads of responses. Internal to common/http.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/http/client.h"

namespace tollgate::http {

// How the body of a response is delimited, and whether the connection may be reused.
struct ResponseFraming {
  enum class Body { kNone, kFixedLength, kChunked, kUntilClose };
  Body body = Body::kNone;
  uint64_t content_length = 0;
  bool keep_alive = true;
};

// The size of the head at the start of the bytes, including its empty line; 0: incomplete.
// searched: where to continue the search, kept by the caller between calls.
size_t FindHeadEnd(std::string_view bytes, size_t* searched);

// head: a complete head from FindHeadEnd. Returns null, or what is wrong with it.
const char* ParseResponseHead(std::string_view head, bool to_head_request, ResponseHead* response,
                              ResponseFraming* framing);

}  // namespace tollgate::http
