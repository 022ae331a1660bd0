// Whole responses: every split of the bytes gives the same head, body and end, and whatever the
// guard accepts Beast reads in the same way.
#include "common/http/response_reader.h"

#include <string>

#include "tests/fuzz/fuzz.h"

namespace tollgate::http {
namespace {

using Status = ResponseReader::Status;

struct Outcome {
  bool refused = false;
  ResponseHead head;
  Status status = Status::kNeedMore;
  std::string body;
  size_t left = 0;  // bytes behind the end
};

template <typename Size>
Outcome Read(std::string_view input, size_t head, bool to_head, Size next_size) {
  Outcome all;
  ResponseReader reader;
  const char* wrong = reader.ReadHead(input.substr(0, head), to_head, &all.head);
  if (wrong != nullptr) {
    FUZZ_CHECK(std::string_view(wrong) != "the framing is ambiguous");
    all.refused = true;
    return all;
  }
  input.remove_prefix(head);
  std::string held;
  while (all.status == Status::kNeedMore && !input.empty()) {
    const size_t size = next_size(input.size());
    held.append(input.substr(0, size));
    input.remove_prefix(size);
    const ResponseReader::Body body = reader.ReadBody(held.data(), held.size());
    FUZZ_CHECK(body.consumed <= held.size() && body.payload.size() <= body.consumed);
    if (!body.payload.empty()) {
      FUZZ_CHECK(body.payload.data() >= held.data());
      FUZZ_CHECK(body.payload.data() + body.payload.size() <= held.data() + body.consumed);
    }
    all.status = body.status;
    all.body.append(body.payload);
    held.erase(0, body.consumed);
  }
  all.left = held.size() + input.size();
  // Only a body without length or chunks ends with the connection, and it takes all bytes.
  const bool until_close = reader.framing().body == ResponseFraming::Body::kUntilClose;
  if (all.status == Status::kNeedMore) FUZZ_CHECK(reader.ReadEnd() == until_close);
  if (until_close) FUZZ_CHECK(all.left == 0 && !reader.framing().keep_alive);
  return all;
}

}  // namespace
}  // namespace tollgate::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tollgate::http;
  const std::string_view input = tollgate::fuzz::Text(data, size);
  size_t searched = 0;
  const size_t head = FindHeadEnd(input, &searched);
  if (head == 0) return 0;
  for (const bool to_head : {false, true}) {
    tollgate::fuzz::Cuts cuts(input);
    const Outcome whole = Read(input, head, to_head, [](size_t left) { return left; });
    const Outcome pieces = Read(input, head, to_head, [&](size_t left) { return cuts.Next(left); });
    FUZZ_CHECK(whole.refused == pieces.refused);
    FUZZ_CHECK(whole.head.status == pieces.head.status);
    FUZZ_CHECK(whole.head.headers == pieces.head.headers);
    FUZZ_CHECK(whole.status == pieces.status);
    // The bytes read before a fault depend on the split.
    if (whole.status == Status::kBad) continue;
    FUZZ_CHECK(whole.body == pieces.body);
    FUZZ_CHECK(whole.left == pieces.left);
  }
  return 0;
}
