// Heads of responses: every split of the bytes gives the same head, and an accepted head has
// nothing that two parsers could read differently.
#include <algorithm>
#include <string>

#include "common/http/head_guard.h"
#include "common/http/response_reader.h"
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
    ResponseReader reader;
    if (reader.ReadHead(input.substr(0, size), to_head, &response) != nullptr) continue;
    FUZZ_CHECK(response.status >= 100 && response.status <= 999);
    CheckHeaders(response.headers);
    if (to_head) FUZZ_CHECK(reader.framing().body == ResponseFraming::Body::kNone);
  }
}

}  // namespace
}  // namespace tollgate::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = tollgate::fuzz::Text(data, size);
  tollgate::http::Response(input);
  return 0;
}
