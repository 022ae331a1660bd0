#include "common/http/response_parser.h"

#include "common/http/head_guard.h"

namespace tollgate::http {
namespace {

constexpr size_t kMaxFields = 256;

const char* ParseStatusLine(std::string_view line, ResponseHead* response,
                            ResponseFraming* framing) {
  bool http_1_0 = line.starts_with("HTTP/1.0 ");
  if (!http_1_0 && !line.starts_with("HTTP/1.1 ")) return "not an HTTP/1.x response";
  framing->keep_alive = !http_1_0;
  if (line.size() < 12 || (line.size() > 12 && line[12] != ' ')) return "malformed status line";
  int status = 0;
  for (char c : line.substr(9, 3)) {
    if (c < '0' || c > '9') return "malformed status";
    status = status * 10 + (c - '0');
  }
  if (status < 100 || status > 599) return "malformed status";
  response->status = status;
  return nullptr;
}

const char* ParseLength(std::string_view value, bool* has_length, uint64_t* length) {
  if (value.empty() || value.size() > 18) return "malformed Content-Length";
  uint64_t number = 0;
  for (char c : value) {
    if (c < '0' || c > '9') return "malformed Content-Length";
    number = number * 10 + static_cast<uint64_t>(c - '0');
  }
  if (*has_length && number != *length) return "two different Content-Lengths";
  *has_length = true;
  *length = number;
  return nullptr;
}

}  // namespace

size_t FindHeadEnd(std::string_view bytes, size_t* searched) {
  size_t from = *searched < 3 ? 0 : *searched - 3;
  size_t end = bytes.find("\r\n\r\n", from);
  *searched = bytes.size();
  return end == std::string_view::npos ? 0 : end + 4;
}

const char* ParseResponseHead(std::string_view head, bool to_head_request, ResponseHead* response,
                              ResponseFraming* framing) {
  size_t end = head.find("\r\n");
  if (const char* wrong = ParseStatusLine(head.substr(0, end), response, framing)) return wrong;
  bool has_length = false;
  bool chunked = false;
  response->headers.reserve(12);
  for (size_t begin = end + 2;; begin = end + 2) {
    end = head.find("\r\n", begin);
    if (end == std::string_view::npos || end == begin) break;
    std::string_view line = head.substr(begin, end - begin);
    size_t colon = 0;
    while (colon < line.size() && IsTokenChar(static_cast<unsigned char>(line[colon]))) ++colon;
    if (colon == 0 || colon == line.size() || line[colon] != ':') return "malformed header";
    std::string name(line.substr(0, colon));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    std::string_view value = TrimSpace(line.substr(colon + 1));
    if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
      return "control character in a header";
    }
    if (name == "content-length") {
      if (const char* wrong = ParseLength(value, &has_length, &framing->content_length))
        return wrong;
    } else if (name == "transfer-encoding") {
      if (chunked || !EqualsIgnoreCase(value, "chunked")) return "unsupported Transfer-Encoding";
      chunked = true;
    } else if (name == "connection") {
      if (ListHasToken(value, "close")) framing->keep_alive = false;
      if (ListHasToken(value, "keep-alive")) framing->keep_alive = true;
    }
    response->headers.emplace_back(std::move(name), std::string(value));
    if (response->headers.size() > kMaxFields) return "too many headers";
  }
  if (chunked && has_length) return "both Content-Length and Transfer-Encoding";
  int status = response->status;
  if (to_head_request || status < 200 || status == 204 || status == 304) {
    framing->body = ResponseFraming::Body::kNone;
  } else if (chunked) {
    framing->body = ResponseFraming::Body::kChunked;
  } else if (has_length) {
    framing->body = framing->content_length == 0 ? ResponseFraming::Body::kNone
                                                 : ResponseFraming::Body::kFixedLength;
  } else {
    framing->body = ResponseFraming::Body::kUntilClose;
    framing->keep_alive = false;
  }
  return nullptr;
}

}  // namespace tollgate::http
