// The event stream reader: every split of the bytes gives the same events.
#include <string>

#include "common/http/sse.h"
#include "tests/fuzz/fuzz.h"

namespace tollgate::http {
namespace {

template <typename Size>
std::string Events(std::string_view input, size_t limit, Size next_size, bool* too_large) {
  SseReader reader(limit);
  std::string events;
  while (!input.empty()) {
    const std::string piece(input.substr(0, next_size(input.size())));
    input.remove_prefix(piece.size());
    reader.Feed(piece);
    SseReader::Event event;
    SseReader::Status status;
    while ((status = reader.Next(&event)) == SseReader::Status::kEvent) {
      FUZZ_CHECK(event.data.size() <= limit);
      FUZZ_CHECK(event.data.find('\r') == std::string_view::npos);
      FUZZ_CHECK(event.name.find_first_of("\r\n") == std::string_view::npos);
      events.append(event.name).append("\r").append(event.id).append("\r");
      events.append(event.data).append("\r");
    }
    *too_large = status == SseReader::Status::kTooLarge;
    if (*too_large) break;
  }
  return events;
}

void Check(std::string_view input, size_t limit) {
  fuzz::Cuts cuts(input);
  bool too_large[2] = {};
  const auto whole = Events(input, limit, [](size_t left) { return left; }, &too_large[0]);
  const auto pieces =
      Events(input, limit, [&](size_t left) { return cuts.Next(left); }, &too_large[1]);
  if (!too_large[0] && !too_large[1]) FUZZ_CHECK(whole == pieces);
}

}  // namespace
}  // namespace tollgate::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = tollgate::fuzz::Text(data, size);
  tollgate::http::Check(input, 1 << 20);
  tollgate::http::Check(input, 32);
  return 0;
}
