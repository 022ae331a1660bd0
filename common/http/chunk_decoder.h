// Decodes the chunked transfer coding in place, as strictly as the grammar allows (H11-H16).
#pragma once

#include <cstddef>
#include <cstdint>

namespace tollgate::http {

class ChunkDecoder {
 public:
  struct Limits {
    uint64_t max_body_bytes = UINT64_MAX;
    size_t max_extension_bytes = 4 * 1024;  // of all chunks
    size_t max_trailer_bytes = 8 * 1024;
    // Whether spaces may follow a chunk size. Some servers send them; requests must not.
    bool allow_padding = false;
  };
  enum class Status { kNeedMore, kDone, kBad, kTooLarge };
  struct Step {
    Status status;
    size_t consumed;  // bytes taken from the front
    size_t produced;  // bytes of payload, now at the front
  };

  ChunkDecoder() = default;
  explicit ChunkDecoder(const Limits& limits) : limits_(limits) {}

  // Decodes bytes in place: their payload is moved to the front. Consumes all of them unless the
  // body ends (kDone) or an error is found. kTooLarge: the body exceeds its limit.
  Step Decode(char* bytes, size_t size);

 private:
  enum class State : uint8_t {
    kSizeFirst,
    kSize,
    kPadding,
    kExtension,
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerFirst,
    kTrailer,
    kTrailerLf,
    kEndLf,
    kDone,
  };
  // Handles one byte outside the payload.
  Status Take(unsigned char c);
  Status AfterSize(unsigned char c);

  Limits limits_;
  State state_ = State::kSizeFirst;
  int digits_ = 0;
  uint64_t remaining_ =
      0;  // payload bytes left in the chunk; while its size is read, the size so far
  uint64_t total_ = 0;
  size_t extension_bytes_ = 0;
  size_t trailer_bytes_ = 0;
};

}  // namespace tollgate::http
