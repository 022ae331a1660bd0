// Judges request heads before Beast parses them: whatever two parsers could read differently is
// refused (docs/design/hostile-inputs.md 1, H1-H30). Pure functions over the received bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tollgate::http {

// Of a name or value. Beast counts their bytes in 16 bits, and throws beyond.
inline constexpr size_t kMaxFieldBytes = 65'000;

struct HeadLimits {
  size_t max_head_bytes = 16 * 1024;
  size_t max_target_bytes = 8 * 1024;
  size_t max_fields = 100;
};

// What the guard understood: how the body is delimited, and whether the connection may be reused.
// Beast must understand the same.
struct Framing {
  uint64_t content_length = 0;
  bool has_content_length = false;
  bool chunked = false;
  bool http_1_0 = false;
  bool keep_alive = true;
  bool expect_continue = false;

  bool has_body() const { return chunked || content_length > 0; }
};

// The views are into the judged bytes.
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
// the error (method, target) are filled in.
const char* JudgeRequestHead(std::string_view head, const HeadLimits& limits, GuardedHead* judged);
// The same for the request line alone, without its line end.
const char* JudgeRequestLine(std::string_view line, const HeadLimits& limits, GuardedHead* judged);

// Character classes of RFC 9110.
bool IsTokenChar(unsigned char c);
// Whether a field value has no control characters but tabs.
bool IsFieldValue(std::string_view value);
// Compares ASCII texts without regard to case.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);
// Whether a comma-separated list contains the token, without regard to case.
bool ListHasToken(std::string_view list, std::string_view token);
// The text without the spaces and tabs around it.
std::string_view TrimSpace(std::string_view text);

}  // namespace tollgate::http
