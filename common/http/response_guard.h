// The guard of response heads in front of Beast's parser: pure functions over bytes. Internal to
// common/http.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tollgate::http {

// How the body of a response is delimited, and whether the connection may be reused.
struct ResponseFraming {
  enum class Body { kNone, kFixedLength, kChunked, kUntilClose };
  Body body = Body::kNone;
  bool has_length = false;
  bool chunked = false;  // also set if the status excludes a body
  bool keep_alive = true;
  int status = 0;
  uint64_t content_length = 0;
};

// Returns the size of the head at the start of the bytes, including its empty line; 0: incomplete.
// searched: position to continue at; the caller keeps it between calls.
size_t FindHeadEnd(std::string_view bytes, size_t* searched);

// head: a complete head from FindHeadEnd. Returns null, or what is wrong with it.
const char* JudgeResponseHead(std::string_view head, bool to_head_request,
                              ResponseFraming* framing);

}  // namespace tollgate::http
