#include "common/http/head_guard.h"

#include <array>
#include <cstring>

namespace tollgate::http {
namespace {

constexpr size_t kMaxMethodBytes = 32;

constexpr std::array<bool, 256> MakeTokenTable() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[c] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[c] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[c] = true;
  for (char c : std::string_view("!#$%&'*+-.^_`|~")) table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kTokenTable = MakeTokenTable();

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Fields that may appear only once in a head.
enum : uint32_t {
  kHost = 1,
  kContentLength = 2,
  kTransferEncoding = 4,
  kContentType = 8,
  kRequestIdField = 16,
  kExpect = 32,
};

uint32_t SingletonOf(std::string_view name) {
  const auto is = [name](std::string_view field) { return EqualsIgnoreCase(name, field); };
  switch (name.size()) {
    case 4:
      return is("host") ? kHost : 0;
    case 6:
      return is("expect") ? kExpect : 0;
    case 12:
      return is("content-type") ? kContentType : is("x-request-id") ? kRequestIdField : 0;
    case 14:
      return is("content-length") ? kContentLength : 0;
    case 17:
      return is("transfer-encoding") ? kTransferEncoding : 0;
    default:
      return 0;
  }
}

const char* JudgeContentLength(std::string_view value, Framing* framing) {
  if (value.empty()) return "empty Content-Length";
  for (char c : value) {
    if (c < '0' || c > '9') return "malformed Content-Length";
  }
  if (value.size() > 1 && value[0] == '0') return "malformed Content-Length";
  if (value.size() > 18) return "Content-Length is too large";
  uint64_t length = 0;
  for (char c : value) length = length * 10 + static_cast<uint64_t>(c - '0');
  framing->content_length = length;
  framing->has_content_length = true;
  return nullptr;
}

const char* JudgeHost(std::string_view value) {
  if (value.empty()) return "empty Host";
  for (unsigned char c : value) {
    if (c <= 0x20 || c >= 0x7f || std::strchr("/\\@,?#<>\"", c) != nullptr) return "malformed Host";
  }
  return nullptr;
}

// Checks the fields that determine the framing.
const char* JudgeSingleton(uint32_t field, std::string_view value, Framing* framing) {
  switch (field) {
    case kHost:
      return JudgeHost(value);
    case kContentLength:
      return JudgeContentLength(value, framing);
    case kTransferEncoding:
      if (framing->http_1_0) return "Transfer-Encoding on HTTP/1.0";
      if (!EqualsIgnoreCase(value, "chunked")) return "unsupported Transfer-Encoding";
      framing->chunked = true;
      return nullptr;
    case kExpect:
      if (!EqualsIgnoreCase(value, "100-continue")) return "unsupported Expect";
      framing->expect_continue = !framing->http_1_0;
      return nullptr;
    default:
      return nullptr;
  }
}

const char* JudgeField(std::string_view line, uint32_t* seen, Framing* framing) {
  if (line[0] == ' ' || line[0] == '\t') return "folded header line";
  if (line.size() > kMaxFieldBytes) return "a header is too large";
  size_t colon = 0;
  while (colon < line.size() && kTokenTable[static_cast<unsigned char>(line[colon])]) ++colon;
  if (colon == 0 || colon == line.size() || line[colon] != ':') return "malformed header name";
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = TrimSpace(line.substr(colon + 1));
  if (!IsFieldValue(value)) return "control character in a header";
  if (uint32_t field = SingletonOf(name)) {
    if (*seen & field) return "duplicate header that may appear only once";
    *seen |= field;
    return JudgeSingleton(field, value, framing);
  }
  if (EqualsIgnoreCase(name, "connection")) {
    if (ListHasToken(value, "close")) {
      framing->keep_alive = false;
    } else if (framing->http_1_0 && ListHasToken(value, "keep-alive")) {
      framing->keep_alive = true;
    }
  }
  return nullptr;
}

}  // namespace

bool IsTokenChar(unsigned char c) { return kTokenTable[c]; }

bool IsFieldValue(std::string_view value) {
  for (unsigned char c : value) {
    if ((c < 0x20 && c != '\t') || c == 0x7f) return false;
  }
  return true;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

std::string_view TrimSpace(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool ListHasToken(std::string_view list, std::string_view token) {
  while (true) {
    size_t comma = list.find(',');
    if (EqualsIgnoreCase(TrimSpace(list.substr(0, comma)), token)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

HeadScanner::Status HeadScanner::Scan(std::string_view head, const HeadLimits& limits) {
  while (true) {
    size_t from = searched_;
    const void* found =
        from < head.size() ? std::memchr(head.data() + from, '\n', head.size() - from) : nullptr;
    if (found == nullptr) {
      searched_ = head.size();
      // 15 is for the spaces and the version of the request line.
      if (lines_ == 0 && head.size() > limits.max_target_bytes + kMaxMethodBytes + 15) {
        return Bad("request target too long");
      }
      if (head.size() > limits.max_head_bytes) return Bad("request head too large");
      return Status::kNeedMore;
    }
    size_t line_feed = static_cast<size_t>(static_cast<const char*>(found) - head.data());
    if (line_feed >= limits.max_head_bytes) return Bad("request head too large");
    if (line_feed == scanned_ || head[line_feed - 1] != '\r') return Bad("bare line feed");
    std::string_view line = head.substr(scanned_, line_feed - 1 - scanned_);
    scanned_ = searched_ = line_feed + 1;
    if (line.empty()) return lines_ == 0 ? Bad("empty request line") : Status::kComplete;
    if (++lines_ > limits.max_fields + 1) return Bad("too many headers");
    if (lines_ == 1) {
      // A client that speaks another protocol gets an error now instead of a timeout.
      GuardedHead judged;
      if (const char* wrong = JudgeRequestLine(line, limits, &judged)) return Bad(wrong);
    }
  }
}

const char* JudgeRequestLine(std::string_view line, const HeadLimits& limits, GuardedHead* judged) {
  size_t space = 0;
  while (space < line.size() && kTokenTable[static_cast<unsigned char>(line[space])]) ++space;
  if (space == 0 || space > kMaxMethodBytes || space == line.size() || line[space] != ' ') {
    return "malformed request line";
  }
  judged->method = line.substr(0, space);
  line.remove_prefix(space + 1);

  size_t end = line.find(' ');
  std::string_view target = line.substr(0, end);
  if (target.size() > limits.max_target_bytes) return "request target too long";
  if (target.empty() || target[0] != '/') return "malformed request target";
  for (unsigned char c : target) {
    if (c <= 0x20 || c >= 0x7f || c == '#') return "malformed request target";
  }
  judged->target = target;

  if (end == std::string_view::npos) return "missing HTTP version";
  std::string_view version = line.substr(end + 1);
  if (version == "HTTP/1.1") return nullptr;
  if (version != "HTTP/1.0") return "unsupported HTTP version";
  judged->framing.http_1_0 = true;
  judged->framing.keep_alive = false;
  return nullptr;
}

const char* JudgeRequestHead(std::string_view head, const HeadLimits& limits, GuardedHead* judged) {
  size_t end = head.find("\r\n");
  if (end == std::string_view::npos) return "missing request line";
  if (const char* wrong = JudgeRequestLine(head.substr(0, end), limits, judged)) return wrong;
  Framing& framing = judged->framing;
  uint32_t seen = 0;
  bool close = false;
  size_t fields = 0;
  for (size_t begin = end + 2;; begin = end + 2) {
    end = head.find("\r\n", begin);
    if (end == std::string_view::npos) return "missing end of the head";
    if (end == begin) break;
    if (++fields > limits.max_fields) return "too many headers";
    if (const char* wrong = JudgeField(head.substr(begin, end - begin), &seen, &framing)) {
      return wrong;
    }
    // A later "keep-alive" does not override a "close".
    close = close || (!framing.keep_alive && !framing.http_1_0);
  }
  if (close) framing.keep_alive = false;
  if (framing.chunked && framing.has_content_length) {
    return "both Content-Length and Transfer-Encoding";
  }
  if (!framing.http_1_0 && !(seen & kHost)) return "missing Host header";
  return nullptr;
}

}  // namespace tollgate::http
