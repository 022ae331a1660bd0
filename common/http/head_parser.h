// Reads request heads under strict rules: whatever two parsers could understand differently is
// refused (reliability.md section 5, H1-H30). Pure: bytes in, fields out.
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

// How the body of a request is delimited, and what its connection may do afterwards.
struct Framing {
  uint64_t content_length = 0;
  bool has_content_length = false;
  bool chunked = false;
  bool http_1_0 = false;
  bool keep_alive = true;
  bool expect_continue = false;
};

// Looks for the end of a head in bytes that come in pieces, and refuses at the first byte that
// cannot be right, without waiting for the rest.
class HeadScanner {
 public:
  enum class Status { kNeedMore, kComplete, kBad };

  // head: everything that has come of it so far, plus what may follow.
  Status Scan(std::string_view head, const HeadLimits& limits);
  // The head's size with its empty line, after kComplete.
  size_t size() const { return scanned_; }
  // After kBad: what was wrong.
  const char* reason() const { return reason_; }
  void Reset() { *this = HeadScanner(); }

 private:
  Status Bad(const char* reason) {
    reason_ = reason;
    return Status::kBad;
  }
  size_t scanned_ = 0;   // after the last line end seen
  size_t searched_ = 0;  // no line end before this place
  size_t lines_ = 0;
  const char* reason_ = nullptr;
};

// head: a whole head as delimited by HeadScanner. Null when it is good, else what is wrong with it.
// What was understood before the fault (method, path) is filled in.
const char* ParseRequestHead(std::string_view head, const HeadLimits& limits, HttpRequest* request,
                             Framing* framing);
// The request line alone, without its line end. The same result.
const char* ParseRequestLine(std::string_view line, const HeadLimits& limits, HttpRequest* request,
                             Framing* framing);

// Character classes of RFC 9110.
bool IsTokenChar(unsigned char c);
// Whether two ASCII texts are the same but for case.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
// Whether a comma-separated list holds this token, whatever its case.
bool ListHasToken(std::string_view list, std::string_view token);
// Without the spaces and tabs around it.
std::string_view TrimSpace(std::string_view text);

}  // namespace tollgate::http
