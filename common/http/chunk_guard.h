// The guard of the chunked transfer coding in front of Beast's parser (H11-H16). It sees every byte
// first, checks each chunk line and trailer line strictly, and decides what the parser gets: the
// digits of a size without padding and extensions, the payload unchanged, and an end without
// trailers, so that trailers never become headers. No allocation, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tollgate::http {

inline constexpr size_t kMaxChunkDigits = 15;
// Limit per line, so that an input buffer of 8 KiB or more always has room for a whole line.
inline constexpr size_t kMaxLineExtensionBytes = 4 * 1024;

struct ChunkLimits {
  uint64_t max_body_bytes = UINT64_MAX;
  size_t max_extension_bytes = 4 * 1024;  // of all chunks
  size_t max_trailer_bytes = 8 * 1024;    // of all trailer lines, with their CRLFs
  // Spaces and tabs after the size in one line. Some engines pad; requests must not.
  size_t max_padding_bytes = 0;
};

// Status of the line at the start of the bytes. A line is kBad at its first wrong byte, even before
// its end has arrived.
enum class LineStatus { kNeedMore, kComplete, kBad };

struct ChunkLine {
  LineStatus status = LineStatus::kNeedMore;
  size_t bytes = 0;   // the whole line with its CRLF
  size_t digits = 0;  // at its start
  uint64_t chunk_bytes = 0;
  size_t extension_bytes = 0;
};
// Checks one chunk line. Pure. most_extension_bytes: what is left of the limit.
ChunkLine JudgeChunkLine(std::string_view bytes, size_t most_extension_bytes,
                         size_t most_padding_bytes);

struct TrailerLine {
  LineStatus status = LineStatus::kNeedMore;
  size_t bytes = 0;  // with its CRLF; 2: the empty line that ends the body
};
// Checks one trailer line. most_bytes: what is left of the limit.
TrailerLine JudgeTrailerLine(std::string_view bytes, size_t most_bytes);

// Guards one chunked body.
class ChunkGuard {
 public:
  enum class Kind {
    kNeedMore,  // nothing for the parser until more bytes arrive
    kLine,      // a size: the parser must not treat it as payload
    kPayload,   // the parser must treat exactly these bytes as payload
    kEnd,       // the last chunk: the parser must be done
    kBad,
    kTooLarge,  // the body exceeds its limit
  };
  struct Piece {
    Kind kind = Kind::kNeedMore;
    size_t consumed = 0;    // bytes of the input to drop, also with kNeedMore
    std::string_view feed;  // for the parser; payload is a part of the input, a line of the guard
  };

  explicit ChunkGuard(const ChunkLimits& limits = {}) : limits_(limits) {}

  // Returns the next piece of the input. The caller keeps unconsumed bytes, at most one incomplete
  // line, and passes them again with the bytes that follow. Not after kEnd, kBad or kTooLarge.
  Piece Next(std::string_view bytes);
  // Payload bytes returned so far.
  uint64_t payload_bytes() const { return total_ - remaining_; }

 private:
  enum class State : uint8_t { kLine, kPayload, kPayloadEnd, kTrailers };
  Piece TakeLine(std::string_view bytes, size_t consumed);
  Piece TakeTrailers(std::string_view bytes, size_t consumed);

  ChunkLimits limits_;
  State state_ = State::kLine;
  // Beast treats the CRLF after a chunk's payload as the start of the next line.
  bool after_chunk_ = false;
  char line_[2 + kMaxChunkDigits + 2] = {'\r', '\n'};
  uint64_t remaining_ = 0;  // payload of the current chunk
  uint64_t total_ = 0;      // payload of all chunks whose size line was read
};

}  // namespace tollgate::http
