#include "common/http/response_guard.h"

#include "common/base/ascii.h"
#include "common/http/head_guard.h"

namespace tollgate::http {
namespace {

constexpr size_t kMaxFields = 256;

// Tokens found in the Connection fields.
struct Tokens {
  bool close = false;
  bool keep_alive = false;
};

const char* JudgeStatusLine(std::string_view line, bool* http_1_0, int* status) {
  *http_1_0 = line.starts_with("HTTP/1.0 ");
  if (!*http_1_0 && !line.starts_with("HTTP/1.1 ")) return "not an HTTP/1.x response";
  if (line.size() < 12 || (line.size() > 12 && line[12] != ' ')) return "malformed status line";
  *status = 0;
  for (const char c : line.substr(9, 3)) {
    if (!IsDigit(c)) return "malformed status";
    *status = *status * 10 + (c - '0');
  }
  return *status < 100 || *status > 599 ? "malformed status" : nullptr;
}

const char* JudgeLength(std::string_view value, ResponseFraming* framing) {
  if (value.empty() || value.size() > 18) return "malformed Content-Length";
  uint64_t number = 0;
  for (const char c : value) {
    if (!IsDigit(c)) return "malformed Content-Length";
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  if (framing->has_length && number != framing->content_length) {
    return "two different Content-Lengths";
  }
  framing->has_length = true;
  framing->content_length = number;
  return nullptr;
}

const char* JudgeField(std::string_view line, ResponseFraming* framing, Tokens* tokens) {
  if (line.size() > kMaxFieldBytes) return "a header is too large";
  size_t colon = 0;
  while (colon < line.size() && IsTokenChar(static_cast<unsigned char>(line[colon]))) ++colon;
  if (colon == 0 || colon == line.size() || line[colon] != ':') return "malformed header";
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = TrimSpace(line.substr(colon + 1));
  if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
    return "control character in a header";
  }
  if (EqualsIgnoreCase(name, "content-length")) return JudgeLength(value, framing);
  if (EqualsIgnoreCase(name, "transfer-encoding")) {
    if (framing->chunked || !EqualsIgnoreCase(value, "chunked")) {
      return "unsupported Transfer-Encoding";
    }
    framing->chunked = true;
  } else if (EqualsIgnoreCase(name, "connection") || EqualsIgnoreCase(name, "proxy-connection")) {
    tokens->close = tokens->close || ListHasToken(value, "close");
    tokens->keep_alive = tokens->keep_alive || ListHasToken(value, "keep-alive");
  }
  return nullptr;
}

}  // namespace

size_t FindHeadEnd(std::string_view bytes, size_t* searched) {
  const size_t from = *searched < 3 ? 0 : *searched - 3;
  const size_t end = bytes.find("\r\n\r\n", from);
  *searched = bytes.size();
  return end == std::string_view::npos ? 0 : end + 4;
}

const char* JudgeResponseHead(std::string_view head, bool to_head_request,
                              ResponseFraming* framing) {
  *framing = {};
  size_t end = head.find("\r\n");
  bool http_1_0 = false;
  if (const char* wrong = JudgeStatusLine(head.substr(0, end), &http_1_0, &framing->status)) {
    return wrong;
  }
  Tokens tokens;
  size_t fields = 0;
  for (size_t begin = end + 2;; begin = end + 2) {
    end = head.find("\r\n", begin);
    if (end == std::string_view::npos || end == begin) break;
    if (++fields > kMaxFields) return "too many headers";
    if (const char* wrong = JudgeField(head.substr(begin, end - begin), framing, &tokens)) {
      return wrong;
    }
  }
  if (framing->chunked && framing->has_length) {
    return "both Content-Length and Transfer-Encoding";
  }
  framing->keep_alive = http_1_0 ? tokens.keep_alive : !tokens.close;
  const int status = framing->status;
  if (to_head_request || status < 200 || status == 204 || status == 304) {
    framing->body = ResponseFraming::Body::kNone;
  } else if (framing->chunked) {
    framing->body = ResponseFraming::Body::kChunked;
  } else if (framing->has_length) {
    framing->body = framing->content_length == 0 ? ResponseFraming::Body::kNone
                                                 : ResponseFraming::Body::kFixedLength;
  } else {
    framing->body = ResponseFraming::Body::kUntilClose;
    framing->keep_alive = false;
  }
  return nullptr;
}

}  // namespace tollgate::http
