// Decodes the content codings of HTTP bodies: gzip, zstd and br. Bytes in, bytes out; no I/O. The
// output is bounded in size and in proportion to the input, and so is the decoder's own memory
// (docs/design/hostile-inputs.md H73).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tollgate::coding {

enum class Coding : uint8_t { kGzip, kZstd, kBrotli };
inline constexpr int kCodings = 3;
// "gzip", "zstd", "br".
std::string_view CodingName(Coding coding);
// Parses one name, in any case; "x-gzip" is gzip (RFC 9110 8.4.1.3). nullopt for anything else,
// including a list.
std::optional<Coding> ParseCoding(std::string_view name);

struct DecodeLimits {
  // Limit of the decoded body.
  size_t max_bytes = 16 * 1024 * 1024;
  // Limit of decoded bytes per coded byte, applied after ratio_from_bytes decoded bytes.
  size_t max_ratio = 100;
  size_t ratio_from_bytes = 1024 * 1024;
};

// Maximum memory of a decoder besides its output. The window of zstd is at most 8 MiB (RFC 9659),
// that of br 16 MiB.
size_t DecoderBytes(Coding coding);

class BodyDecoder {
 public:
  enum class Status {
    kMore,      // the output has reached `most` bytes
    kDone,      // the input was complete and is decoded
    kBroken,    // malformed, cut off, or followed by other bytes
    kTooLarge,  // above max_bytes
    kBomb,      // above max_ratio
    kNoMemory,
  };

  // coded: the whole body; must outlive the decoder.
  BodyDecoder(Coding coding, std::string_view coded, const DecodeLimits& limits);
  ~BodyDecoder();
  BodyDecoder(const BodyDecoder&) = delete;
  BodyDecoder& operator=(const BodyDecoder&) = delete;

  // Appends to the output until it has `most` bytes or the input ends. Call it again with a larger
  // size after kMore, and only then. The output never exceeds max_bytes.
  Status Decode(std::string& out, size_t most);

  // Decoder of one coding. Internal.
  class Stream;

 private:
  Status Judge(size_t bytes) const;

  const DecodeLimits limits_;
  const size_t coded_bytes_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace tollgate::coding
