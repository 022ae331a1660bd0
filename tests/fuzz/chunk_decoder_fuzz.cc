// The chunked coding: every split of the bytes gives the same payload and the same result.
#include <string>

#include "common/http/chunk_decoder.h"
#include "tests/fuzz/fuzz.h"

namespace tollgate::http {
namespace {

struct Decoded {
  ChunkDecoder::Status status = ChunkDecoder::Status::kNeedMore;
  size_t consumed = 0;
  std::string payload;
};

template <typename Size>
Decoded Decode(std::string_view input, const ChunkDecoder::Limits& limits, Size next_size) {
  ChunkDecoder decoder(limits);
  Decoded all;
  while (!input.empty() && all.status == ChunkDecoder::Status::kNeedMore) {
    std::string piece(input.substr(0, next_size(input.size())));
    const ChunkDecoder::Step step = decoder.Decode(piece.data(), piece.size());
    FUZZ_CHECK(step.consumed <= piece.size());
    FUZZ_CHECK(step.produced <= step.consumed);
    if (step.status == ChunkDecoder::Status::kNeedMore) FUZZ_CHECK(step.consumed == piece.size());
    all.status = step.status;
    all.consumed += step.consumed;
    all.payload.append(piece, 0, step.produced);
    input.remove_prefix(step.consumed);
  }
  FUZZ_CHECK(all.payload.size() <= limits.max_body_bytes);
  return all;
}

Decoded Check(std::string_view input, const ChunkDecoder::Limits& limits) {
  fuzz::Cuts cuts(input);
  const Decoded whole = Decode(input, limits, [](size_t left) { return left; });
  const Decoded pieces = Decode(input, limits, [&](size_t left) { return cuts.Next(left); });
  FUZZ_CHECK(whole.status == pieces.status);
  FUZZ_CHECK(whole.consumed == pieces.consumed);
  FUZZ_CHECK(whole.payload == pieces.payload);
  return whole;
}

}  // namespace
}  // namespace tollgate::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tollgate::http::ChunkDecoder;
  const std::string_view input = tollgate::fuzz::Text(data, size);
  const auto strict = tollgate::http::Check(input, {});
  const auto padded = tollgate::http::Check(input, {.allow_padding = true});
  if (strict.status == ChunkDecoder::Status::kDone) {
    FUZZ_CHECK(padded.status == ChunkDecoder::Status::kDone);
    FUZZ_CHECK(padded.payload == strict.payload);
  }
  tollgate::http::Check(input,
                        {.max_body_bytes = 20, .max_extension_bytes = 8, .max_trailer_bytes = 16});
  return 0;
}
