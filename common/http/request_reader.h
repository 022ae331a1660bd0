// Reads requests: the guard checks the head and every chunk line, then Beast parses them. Internal
// to common/http.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/http/chunk_guard.h"
#include "common/http/exchange.h"
#include "common/http/head_guard.h"
#include "common/http/view_body.h"

namespace tollgate::http {

struct RequestLimits {
  HeadLimits head;
  uint64_t max_body_bytes = 16 * 1024 * 1024;  // with Content-Length
  ChunkLimits chunks;
};

class RequestReader {
 public:
  enum class Status {
    kNeedMore,
    kHead,     // the head is complete and the request has a body
    kDone,     // the request is complete
    kBad,      // see reason()
    kTooLarge  // the body exceeds its limit
  };
  struct Step {
    Status status = Status::kNeedMore;
    size_t consumed = 0;  // bytes taken from the front of the input
  };

  // input: all bytes that have arrived and are not consumed. Fills in everything but the body;
  // after kBad, method and path if they could be read.
  Step ReadHead(std::string_view input, const RequestLimits& limits, HttpRequest* request);
  // Call it after kHead. Appends the payload in the input to the body.
  Step ReadBody(std::string_view input, std::string* body);
  // Prepares for the next request. An idle reader holds no memory.
  void Reset();

  const Framing& framing() const { return framing_; }
  // After kBad.
  const char* reason() const { return reason_; }
  // Whether the guard and Beast read the same bytes differently.
  bool disagreed() const { return disagreed_; }

 private:
  using Parser = boost::beast::http::request_parser<ViewBody>;

  Step Bad(const char* reason, bool disagreed = false);
  Step ParseHead(std::string_view head, const GuardedHead& judged, const RequestLimits& limits,
                 HttpRequest* request);
  // Returns false if Beast does not take all of these bytes as payload.
  bool PutPayload(std::string_view bytes, std::string* body);
  Step ReadLength(std::string_view input, std::string* body);
  Step ReadChunks(std::string_view input, std::string* body);

  HeadScanner scanner_;
  Framing framing_;
  ChunkGuard chunks_;
  std::optional<Parser> parser_;
  const char* reason_ = nullptr;
  bool disagreed_ = false;
};

}  // namespace tollgate::http
