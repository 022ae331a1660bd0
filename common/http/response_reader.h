// Reads one response from bytes that arrive in pieces: Beast's parser, with the guards in front of
// it (response_guard.h, chunk_guard.h). Where the guard and Beast do not agree, the response is
// refused. No I/O. Internal to common/http.
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

  // head: a complete head from FindHeadEnd. Returns null, or what is wrong with it. Once for each
  // interim response and once for the final one.
  const char* ReadHead(std::string_view head, bool to_head_request, ResponseHead* response);
  const ResponseFraming& framing() const { return framing_; }

  // The next bytes of the body. Moves the payload of several chunks together. What is not consumed
  // (at most one incomplete line) must be passed again with the bytes that follow.
  Body ReadBody(char* bytes, size_t size);
  // At the end of the connection: whether that completes the response.
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
  uint64_t remaining_ = 0;  // of a body with Content-Length
};

}  // namespace tollgate::http
