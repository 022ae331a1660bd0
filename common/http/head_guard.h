// Checks request heads before Beast parses them. Refuses everything that two parsers could read
// differently (docs/design/hostile-inputs.md 1, H1-H30). Pure functions over the received bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tollgate::http {

// Limit of a name or value. Beast counts their bytes in 16 bits and throws beyond.
inline constexpr size_t kMaxFieldBytes = 65'000;

struct HeadLimits {
  size_t max_head_bytes = 16 * 1024;
  size_t max_target_bytes = 8 * 1024;
  size_t max_fields = 100;
};

// The guard's reading of the framing: how the body is delimited, and whether the connection may be
// reused. Beast must agree.
struct Framing {
  uint64_t content_length = 0;
  bool has_content_length = false;
  bool chunked = false;
  bool http_1_0 = false;
  bool keep_alive = true;
  bool expect_continue = false;

  bool has_body() const { return chunked || content_length > 0; }
};

// The views refer to the checked bytes.
struct GuardedHead {
  std::string_view method;
  std::string_view target;
  Framing framing;
};

// Finds the end of a head in bytes that arrive in pieces, and rejects an invalid request line and
// an invalid size without waiting for the rest.
class HeadScanner {
 public:
  enum class Status { kNeedMore, kComplete, kBad };

  // head: all bytes so far; bytes after the head are allowed.
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
  size_t searched_ = 0;  // no line end between scanned_ and here
  size_t lines_ = 0;
  const char* reason_ = nullptr;
};

// head: a complete head from HeadScanner. Returns null, or what is wrong with it. Method and target
// are set if they precede the error.
const char* JudgeRequestHead(std::string_view head, const HeadLimits& limits, GuardedHead* judged);
// As JudgeRequestHead, for the request line without its line end.
const char* JudgeRequestLine(std::string_view line, const HeadLimits& limits, GuardedHead* judged);

// Character classes of RFC 9110.
bool IsTokenChar(unsigned char c);
// Whether a field value has no control characters except tabs.
bool IsFieldValue(std::string_view value);
// Compares ASCII texts, ignoring case.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
// Whether a comma-separated list contains the token, ignoring case.
bool ListHasToken(std::string_view list, std::string_view token);
// Removes leading and trailing spaces and tabs.
std::string_view TrimSpace(std::string_view text);

}  // namespace tollgate::http
