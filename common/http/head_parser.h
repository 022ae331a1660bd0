// Parses request heads strictly: input that two parsers could read differently is rejected
// (docs/design/hostile-inputs.md, H1-H30). Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/http/exchange.h"

namespace tollgate::http {

struct HeadLimits {
  size_t max_head_bytes = 16 * 1024;
  size_t max_target_bytes = 8 * 1024;
  size_t max_fields = 100;
};

// How the body of a request is delimited, and whether the connection may be reused.
struct Framing {
  uint64_t content_length = 0;
  bool has_content_length = false;
  bool chunked = false;
  bool http_1_0 = false;
  bool keep_alive = true;
  bool expect_continue = false;
};

// Finds the end of a head in bytes that arrive in pieces, and rejects an invalid request line and
// an invalid size without waiting for the rest.
class HeadScanner {
 public:
  enum class Status { kNeedMore, kComplete, kBad };

  // head: all bytes so far, possibly with bytes after the head.
  Status Scan(std::string_view head, const HeadLimits& limits);
  // After kComplete: the size of the head, including its empty line.
  size_t size() const { return scanned_; }
  // After kBad: the reason.
  const char* reason() const { return reason_; }
  void Reset() { *this = HeadScanner(); }

 private:
  Status Bad(const char* reason) {
    reason_ = reason;
    return Status::kBad;
  }
  size_t scanned_ = 0;   // the end of the last complete line
  size_t searched_ = 0;  // there is no line end between scanned_ and here
  size_t lines_ = 0;
  const char* reason_ = nullptr;
};

// head: a complete head from HeadScanner. Returns null, or what is wrong with it. The parts before
// the error (method, path) are filled in.
const char* ParseRequestHead(std::string_view head, const HeadLimits& limits, HttpRequest* request,
                             Framing* framing);
// The same for the request line alone, without its line end.
const char* ParseRequestLine(std::string_view line, const HeadLimits& limits, HttpRequest* request,
                             Framing* framing);

// Character classes of RFC 9110.
bool IsTokenChar(unsigned char c);
// Compares ASCII texts without regard to case.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
// Whether a comma-separated list contains the token, without regard to case.
bool ListHasToken(std::string_view list, std::string_view token);
// The text without the spaces and tabs around it.
std::string_view TrimSpace(std::string_view text);

}  // namespace tollgate::http
