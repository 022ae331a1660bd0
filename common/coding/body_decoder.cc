#include "common/coding/body_decoder.h"

#include <brotli/decode.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>

namespace tollgate::coding {
namespace {

// The output grows in steps of this size.
constexpr size_t kStepBytes = 64 * 1024;
// Limit of gzip members and zstd frames per body. Even an empty one costs work.
constexpr int kMaxParts = 1000;
// 8 MiB, the largest window that RFC 9659 allows for this content coding.
constexpr int kZstdWindowLog = 23;

}  // namespace

class BodyDecoder::Stream {
 public:
  enum class Step { kMore, kEnd, kBroken, kNoMemory };

  explicit Stream(std::string_view coded) : in_(coded) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Writes at most `room` bytes, which is above 0. kMore: the room is used up, and more may follow.
  virtual Step Run(char* to, size_t room, size_t* written) = 0;

 protected:
  // A part has ended and bytes follow. Returns whether another part may begin.
  bool NextPart() { return ++parts_ <= kMaxParts; }

  std::string_view in_;  // not decoded yet

 private:
  int parts_ = 1;
};

namespace {

class GzipStream final : public BodyDecoder::Stream {
 public:
  explicit GzipStream(std::string_view coded) : Stream(coded) {
    constexpr int kGzipOnly = 16;
    ready_ = inflateInit2(&zlib_, MAX_WBITS + kGzipOnly) == Z_OK;
  }
  ~GzipStream() override {
    if (ready_) inflateEnd(&zlib_);
  }

  Step Run(char* to, size_t room, size_t* written) override {
    if (!ready_) return Step::kNoMemory;
    zlib_.next_out = reinterpret_cast<Bytef*>(to);
    zlib_.avail_out = static_cast<uInt>(room);
    Step step = Step::kMore;
    while (zlib_.avail_out > 0 && step == Step::kMore) step = Continue();
    *written = room - zlib_.avail_out;
    return step;
  }

 private:
  Step Continue() {
    const size_t offered = std::min<size_t>(in_.size(), size_t{1} << 30);
    zlib_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in_.data()));
    zlib_.avail_in = static_cast<uInt>(offered);
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    in_.remove_prefix(offered - zlib_.avail_in);
    switch (result) {
      case Z_OK:
        return Step::kMore;
      case Z_STREAM_END:
        if (in_.empty()) return Step::kEnd;
        return NextPart() && inflateReset(&zlib_) == Z_OK ? Step::kMore : Step::kBroken;
      case Z_MEM_ERROR:
        return Step::kNoMemory;
      default:  // Z_BUF_ERROR: the input is cut off
        return Step::kBroken;
    }
  }

  z_stream zlib_ = {};
  bool ready_ = false;
};

class ZstdStream final : public BodyDecoder::Stream {
 public:
  explicit ZstdStream(std::string_view coded) : Stream(coded), zstd_(ZSTD_createDCtx()) {
    ready_ = zstd_ != nullptr &&
             ZSTD_isError(ZSTD_DCtx_setParameter(zstd_, ZSTD_d_windowLogMax, kZstdWindowLog)) == 0;
  }
  ~ZstdStream() override { ZSTD_freeDCtx(zstd_); }

  Step Run(char* to, size_t room, size_t* written) override {
    if (!ready_) return Step::kNoMemory;
    ZSTD_outBuffer output{to, room, 0};
    Step step = Step::kMore;
    while (output.pos < output.size && step == Step::kMore) step = Continue(output);
    *written = output.pos;
    return step;
  }

 private:
  Step Continue(ZSTD_outBuffer& output) {
    ZSTD_inBuffer input{in_.data(), in_.size(), 0};
    const size_t made_before = output.pos;
    const size_t result = ZSTD_decompressStream(zstd_, &output, &input);
    if (ZSTD_isError(result) != 0) {
      return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? Step::kNoMemory
                                                                       : Step::kBroken;
    }
    in_.remove_prefix(input.pos);
    if (result == 0) {
      if (in_.empty()) return Step::kEnd;
      return NextPart() ? Step::kMore : Step::kBroken;
    }
    const bool stuck = input.pos == 0 && output.pos == made_before;
    return stuck ? Step::kBroken : Step::kMore;  // cut off
  }

  ZSTD_DCtx* const zstd_;
  bool ready_ = false;
};

class BrotliStream final : public BodyDecoder::Stream {
 public:
  explicit BrotliStream(std::string_view coded)
      : Stream(coded), brotli_(BrotliDecoderCreateInstance(nullptr, nullptr, nullptr)) {}
  ~BrotliStream() override {
    if (brotli_ != nullptr) BrotliDecoderDestroyInstance(brotli_);
  }

  Step Run(char* to, size_t room, size_t* written) override {
    if (brotli_ == nullptr) return Step::kNoMemory;
    size_t in_left = in_.size();
    const auto* in = reinterpret_cast<const uint8_t*>(in_.data());
    size_t room_left = room;
    auto* out = reinterpret_cast<uint8_t*>(to);
    const BrotliDecoderResult result =
        BrotliDecoderDecompressStream(brotli_, &in_left, &in, &room_left, &out, nullptr);
    in_.remove_prefix(in_.size() - in_left);
    *written = room - room_left;
    switch (result) {
      case BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT:
        return Step::kMore;
      case BROTLI_DECODER_RESULT_SUCCESS:
        return in_.empty() ? Step::kEnd : Step::kBroken;
      case BROTLI_DECODER_RESULT_ERROR: {
        const BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(brotli_);
        const bool memory = code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
                            code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
        return memory ? Step::kNoMemory : Step::kBroken;
      }
      case BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT:  // cut off
        break;
    }
    return Step::kBroken;
  }

 private:
  BrotliDecoderState* const brotli_;
};

std::unique_ptr<BodyDecoder::Stream> MakeStream(Coding coding, std::string_view coded) {
  switch (coding) {
    case Coding::kGzip:
      return std::make_unique<GzipStream>(coded);
    case Coding::kZstd:
      return std::make_unique<ZstdStream>(coded);
    case Coding::kBrotli:
      break;
  }
  return std::make_unique<BrotliStream>(coded);
}

bool IsName(std::string_view text, std::string_view lower_name) {
  return std::equal(text.begin(), text.end(), lower_name.begin(), lower_name.end(),
                    [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a | 0x20 : a) == b; });
}

}  // namespace

std::string_view CodingName(Coding coding) {
  constexpr std::string_view kNames[kCodings] = {"gzip", "zstd", "br"};
  return kNames[static_cast<size_t>(coding)];
}

std::optional<Coding> ParseCoding(std::string_view name) {
  if (IsName(name, "gzip") || IsName(name, "x-gzip")) return Coding::kGzip;
  if (IsName(name, "zstd")) return Coding::kZstd;
  if (IsName(name, "br")) return Coding::kBrotli;
  return std::nullopt;
}

size_t DecoderBytes(Coding coding) {
  constexpr size_t kBytes[kCodings] = {64 << 10, 9 << 20, 17 << 20};
  return kBytes[static_cast<size_t>(coding)];
}

BodyDecoder::BodyDecoder(Coding coding, std::string_view coded, const DecodeLimits& limits)
    : limits_(limits), coded_bytes_(coded.size()), stream_(MakeStream(coding, coded)) {}

BodyDecoder::~BodyDecoder() = default;

BodyDecoder::Status BodyDecoder::Judge(size_t bytes) const {
  if (bytes > limits_.max_bytes) return Status::kTooLarge;
  const bool bomb = bytes > limits_.ratio_from_bytes && bytes / limits_.max_ratio > coded_bytes_;
  return bomb ? Status::kBomb : Status::kMore;
}

BodyDecoder::Status BodyDecoder::Decode(std::string& out, size_t most) {
  // One byte above the limit shows that the body is too large.
  const size_t end = std::min(most, limits_.max_bytes + 1);
  while (true) {
    const size_t before = out.size();
    if (before >= end) return Status::kMore;
    out.resize(std::min(end, before + kStepBytes));
    size_t written = 0;
    const Stream::Step step = stream_->Run(out.data() + before, out.size() - before, &written);
    out.resize(before + written);
    if (step == Stream::Step::kBroken) return Status::kBroken;
    if (step == Stream::Step::kNoMemory) return Status::kNoMemory;
    if (const Status judged = Judge(out.size()); judged != Status::kMore) {
      out.resize(std::min(out.size(), limits_.max_bytes));
      return judged;
    }
    if (step == Stream::Step::kEnd) return Status::kDone;
  }
}

}  // namespace tollgate::coding
