#include "common/http/chunk_decoder.h"

#include <algorithm>
#include <cstring>

#include "common/base/ascii.h"
#include "common/http/head_guard.h"

namespace tollgate::http {
namespace {

bool IsControl(unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; }

}  // namespace

ChunkDecoder::Step ChunkDecoder::Decode(char* bytes, size_t size) {
  size_t in = 0;
  size_t out = 0;
  while (in < size && state_ != State::kDone) {
    if (state_ == State::kData) {
      size_t take = static_cast<size_t>(std::min<uint64_t>(remaining_, size - in));
      if (in != out) std::memmove(bytes + out, bytes + in, take);
      in += take;
      out += take;
      remaining_ -= take;
      if (remaining_ == 0) state_ = State::kDataCr;
      continue;
    }
    Status status = Take(static_cast<unsigned char>(bytes[in]));
    if (status == Status::kBad || status == Status::kTooLarge) return {status, in, out};
    ++in;
  }
  return {state_ == State::kDone ? Status::kDone : Status::kNeedMore, in, out};
}

ChunkDecoder::Status ChunkDecoder::AfterSize(unsigned char c) {
  if (c == '\r') {
    state_ = State::kSizeLf;
  } else if (c == ';') {
    if (++extension_bytes_ > limits_.max_extension_bytes) return Status::kBad;
    state_ = State::kExtension;
  } else if (c == ' ' && limits_.allow_padding) {
    if (++extension_bytes_ > limits_.max_extension_bytes) return Status::kBad;
    state_ = State::kPadding;
  } else {
    return Status::kBad;
  }
  return Status::kNeedMore;
}

ChunkDecoder::Status ChunkDecoder::Take(unsigned char c) {
  switch (state_) {
    case State::kSizeFirst:
      digits_ = 0;
      remaining_ = 0;
      if (HexValue(c) < 0) return Status::kBad;
      state_ = State::kSize;
      [[fallthrough]];
    case State::kSize:
      if (int value = HexValue(c); value >= 0) {
        if (++digits_ > 15) return Status::kBad;
        remaining_ = remaining_ * 16 + static_cast<uint64_t>(value);
        return Status::kNeedMore;
      }
      return AfterSize(c);
    case State::kPadding:
      return AfterSize(c);
    case State::kExtension:
      if (c == '\r') {
        state_ = State::kSizeLf;
        return Status::kNeedMore;
      }
      if (IsControl(c) || ++extension_bytes_ > limits_.max_extension_bytes) return Status::kBad;
      return Status::kNeedMore;
    case State::kSizeLf:
      if (c != '\n') return Status::kBad;
      if (remaining_ > limits_.max_body_bytes - total_) return Status::kTooLarge;
      total_ += remaining_;
      state_ = remaining_ == 0 ? State::kTrailerFirst : State::kData;
      return Status::kNeedMore;
    case State::kDataCr:
      if (c != '\r') return Status::kBad;
      state_ = State::kDataLf;
      return Status::kNeedMore;
    case State::kDataLf:
      if (c != '\n') return Status::kBad;
      state_ = State::kSizeFirst;
      return Status::kNeedMore;
    case State::kTrailerFirst:
      if (c == '\r') {
        state_ = State::kEndLf;
        return Status::kNeedMore;
      }
      if (!IsTokenChar(c)) return Status::kBad;
      state_ = State::kTrailer;
      [[fallthrough]];
    case State::kTrailer:
      if (++trailer_bytes_ > limits_.max_trailer_bytes) return Status::kBad;
      if (c == '\r') {
        state_ = State::kTrailerLf;
      } else if (IsControl(c)) {
        return Status::kBad;
      }
      return Status::kNeedMore;
    case State::kTrailerLf:
      if (c != '\n') return Status::kBad;
      state_ = State::kTrailerFirst;
      return Status::kNeedMore;
    case State::kEndLf:
      if (c != '\n') return Status::kBad;
      state_ = State::kDone;
      return Status::kNeedMore;
    case State::kData:
    case State::kDone:
      break;
  }
  return Status::kBad;
}

}  // namespace tollgate::http
