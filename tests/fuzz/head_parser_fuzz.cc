// Heads of requests and responses: every split of the bytes gives the same head, and an accepted
// head has nothing that two parsers could read differently.
#include <algorithm>
#include <string>

#include "common/http/head_parser.h"
#include "common/http/response_parser.h"
#include "tests/fuzz/fuzz.h"

namespace tollgate::http {
namespace {

bool IsClean(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

void CheckHeaders(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    FUZZ_CHECK(!name.empty());
    for (const char c : name) {
      FUZZ_CHECK(IsTokenChar(static_cast<unsigned char>(c)) && !(c >= 'A' && c <= 'Z'));
    }
    FUZZ_CHECK(IsClean(value));
    // Repeated credentials are joined with a comma, also with an empty one.
    const bool joined = name == "authorization" || name == "x-api-key";
    FUZZ_CHECK(joined || TrimSpace(value) == value);
  }
}

void CheckRequest(std::string_view head, const HeadLimits& limits) {
  HttpRequest request;
  Framing framing;
  if (ParseRequestHead(head, limits, &request, &framing) != nullptr) return;
  FUZZ_CHECK(!request.method.empty());
  FUZZ_CHECK(!request.path.empty());
  for (const std::string* text : {&request.path, &request.query}) {
    FUZZ_CHECK(IsClean(*text) && text->find(' ') == std::string::npos);
  }
  FUZZ_CHECK(!(framing.chunked && framing.has_content_length));
  FUZZ_CHECK(!(framing.chunked && framing.http_1_0));
  CheckHeaders(request.headers);
  FUZZ_CHECK(request.headers.size() <= limits.max_fields);
}

void Request(std::string_view input) {
  HeadLimits limits;
  HeadScanner whole;
  const HeadScanner::Status status = whole.Scan(input, limits);
  HeadScanner pieces;
  fuzz::Cuts cuts(input);
  HeadScanner::Status so_far = HeadScanner::Status::kNeedMore;
  for (size_t come = 0; come < input.size() && so_far == HeadScanner::Status::kNeedMore;) {
    come += cuts.Next(input.size() - come);
    const std::string bytes(input.substr(0, come));  // as in a buffer that moves when it grows
    so_far = pieces.Scan(bytes, limits);
  }
  FUZZ_CHECK(so_far == status);
  if (status == HeadScanner::Status::kBad) FUZZ_CHECK(whole.reason() != nullptr);
  if (status != HeadScanner::Status::kComplete) return;
  FUZZ_CHECK(whole.size() == pieces.size());
  FUZZ_CHECK(whole.size() > 0 && whole.size() <= input.size());
  const std::string_view head = input.substr(0, whole.size());
  FUZZ_CHECK(head.ends_with("\r\n\r\n"));
  CheckRequest(head, limits);
}

void Response(std::string_view input) {
  size_t searched = 0;
  const size_t size = FindHeadEnd(input, &searched);
  size_t resumed = 0;
  size_t found = 0;
  fuzz::Cuts cuts(input);
  for (size_t come = 0; come < input.size() && found == 0;) {
    come += cuts.Next(input.size() - come);
    found = FindHeadEnd(input.substr(0, come), &resumed);
  }
  FUZZ_CHECK(found == size);
  if (size == 0) return;
  FUZZ_CHECK(size <= input.size());
  for (const bool to_head : {false, true}) {
    ResponseHead response;
    ResponseFraming framing;
    if (ParseResponseHead(input.substr(0, size), to_head, &response, &framing) != nullptr) continue;
    FUZZ_CHECK(response.status >= 100 && response.status <= 999);
    CheckHeaders(response.headers);
    if (to_head) FUZZ_CHECK(framing.body == ResponseFraming::Body::kNone);
  }
}

}  // namespace
}  // namespace tollgate::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = tollgate::fuzz::Text(data, size);
  tollgate::http::Request(input);
  tollgate::http::Response(input);
  return 0;
}
