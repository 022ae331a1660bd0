// Reads one response from bytes that arrive in pieces: Beast's parser, with guards in front of it
// (response_guard.h, chunk_guard.h). If guard and Beast disagree, the response is refused. No I/O.
// Internal to common/http.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "common/http/chunk_guard.h"
#include "common/http/client.h"
#include "common/http/response_guard.h"
#include "common/http/view_body.h"

namespace tollgate::http {

class ResponseReader {
 public:
  enum class Status { kNeedMore, kDone, kBad };
  struct Body {
    Status status = Status::kNeedMore;
    size_t consumed = 0;       // bytes taken from the front
    std::string_view payload;  // within the consumed bytes
  };

  // head: a complete head from FindHeadEnd. Returns null, or what is wrong with it. Call it once
  // for each interim response and once for the final one.
  const char* ReadHead(std::string_view head, bool to_head_request, ResponseHead* response);
  const ResponseFraming& framing() const { return framing_; }

  // Reads the next bytes of the body. Makes the payload of several chunks contiguous. Unconsumed
  // bytes (at most one incomplete line) must be passed again with the bytes that follow.
  Body ReadBody(char* bytes, size_t size);
  // Call it at the end of the connection. Returns whether that completes the response.
  bool ReadEnd();

 private:
  using Parser = boost::beast::http::response_parser<ViewBody>;
  bool Put(std::string_view bytes);
  bool PutPayload(std::string_view bytes);
  bool GuardAndParserAgree() const;
  Body ReadChunks(char* bytes, size_t size);

  std::optional<Parser> parser_;
  ResponseFraming framing_;
  ChunkGuard chunks_;
  uint64_t remaining_ = 0;  // for a body with Content-Length
};

}  // namespace tollgate::http
