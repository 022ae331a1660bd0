// The chunked coding: every split of the bytes gives the same payload and the same end, guard and
// parser agree on every piece, and a body that the guard accepts is the same one to Beast alone.
#include "common/http/chunk_guard.h"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>

#include "tests/fuzz/fuzz.h"

namespace tollgate::http {
namespace {

namespace beast_http = boost::beast::http;
using Kind = ChunkGuard::Kind;

class Parser {
 public:
  Parser() {
    parser_.body_limit(boost::none);
    parser_.header_limit(UINT32_MAX);
    FUZZ_CHECK(Put("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"));
  }
  // Returns false if it refuses the bytes or expects more.
  bool Put(std::string_view bytes) {
    while (!bytes.empty() && !parser_.is_done()) {
      boost::system::error_code error;
      const size_t used = parser_.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
      if ((error && error != beast_http::error::need_more) || used == 0) return false;
      bytes.remove_prefix(used);
    }
    left_ = bytes.size();
    return true;
  }
  bool done() const { return parser_.is_done(); }
  const std::string& body() const { return parser_.get().body(); }
  // Bytes of the last Put behind the end.
  size_t left() const { return left_; }
  long fields() const { return std::distance(parser_.get().begin(), parser_.get().end()); }

 private:
  beast_http::response_parser<beast_http::string_body> parser_;
  size_t left_ = 0;
};

struct Outcome {
  Kind kind = Kind::kNeedMore;
  size_t consumed = 0;
  std::string body;
};

template <typename Size>
Outcome Read(std::string_view input, const ChunkLimits& limits, Size next_size) {
  ChunkGuard guard(limits);
  Parser parser;
  Outcome all;
  std::string held;
  bool open = true;
  while (open && !input.empty()) {
    const size_t size = next_size(input.size());
    held.append(input.substr(0, size));
    input.remove_prefix(size);
    do {
      const ChunkGuard::Piece piece = guard.Next(held);
      FUZZ_CHECK(piece.consumed <= held.size());
      const size_t before = parser.body().size();
      const auto payload = piece.kind == Kind::kPayload ? piece.feed : std::string_view();
      FUZZ_CHECK(!parser.done() && parser.Put(piece.feed) && parser.left() == 0);
      FUZZ_CHECK(parser.body().size() == before + payload.size());
      FUZZ_CHECK(parser.body().ends_with(payload));
      FUZZ_CHECK(parser.done() == (piece.kind == Kind::kEnd));
      all.kind = piece.kind;
      all.consumed += piece.consumed;
      held.erase(0, piece.consumed);
    } while (all.kind == Kind::kLine || all.kind == Kind::kPayload);
    open = all.kind == Kind::kNeedMore;
  }
  all.body = parser.body();
  FUZZ_CHECK(parser.fields() == 1);
  FUZZ_CHECK(guard.payload_bytes() == all.body.size());
  FUZZ_CHECK(all.body.size() <= limits.max_body_bytes);
  return all;
}

Outcome Check(std::string_view input, const ChunkLimits& limits) {
  fuzz::Cuts cuts(input);
  const Outcome whole = Read(input, limits, [](size_t left) { return left; });
  const Outcome pieces = Read(input, limits, [&](size_t left) { return cuts.Next(left); });
  FUZZ_CHECK(whole.kind == pieces.kind);
  FUZZ_CHECK(whole.body == pieces.body);
  if (whole.kind == Kind::kEnd) FUZZ_CHECK(whole.consumed == pieces.consumed);
  return whole;
}

}  // namespace
}  // namespace tollgate::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tollgate::http;
  const std::string_view input = tollgate::fuzz::Text(data, size);
  const Outcome strict = Check(input, {});
  const Outcome padded = Check(input, {.max_padding_bytes = 64});
  if (strict.kind == Kind::kEnd) {
    FUZZ_CHECK(padded.kind == Kind::kEnd && padded.body == strict.body);
    Parser alone;
    if (alone.Put(input) && alone.done()) {
      FUZZ_CHECK(alone.body() == strict.body);
      FUZZ_CHECK(input.size() - alone.left() == strict.consumed);
    }
  }
  Check(input, {.max_body_bytes = 20, .max_extension_bytes = 8, .max_trailer_bytes = 16});
  return 0;
}
