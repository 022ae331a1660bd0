#include "common/http/chunk_guard.h"

#include <algorithm>
#include <cstring>

#include "common/base/ascii.h"
#include "common/http/head_guard.h"

namespace tollgate::http {
namespace {

bool IsControl(unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; }

// Sets the status of a line whose text ends at `end`: it must be followed by CRLF.
template <typename Line>
Line WithEnd(Line line, std::string_view bytes, size_t end) {
  if (end < bytes.size() && bytes[end] != '\r') {
    line.status = LineStatus::kBad;
  } else if (end + 1 < bytes.size()) {
    line.status = bytes[end + 1] == '\n' ? LineStatus::kComplete : LineStatus::kBad;
    line.bytes = end + 2;
  }
  return line;
}

}  // namespace

ChunkLine JudgeChunkLine(std::string_view bytes, size_t most_extension_bytes,
                         size_t most_padding_bytes) {
  ChunkLine line;
  size_t at = 0;
  for (; at < bytes.size(); ++at) {
    const int value = HexValue(bytes[at]);
    if (value < 0) break;
    if (++line.digits > kMaxChunkDigits) return {.status = LineStatus::kBad};
    line.chunk_bytes = line.chunk_bytes * 16 + static_cast<uint64_t>(value);
  }
  if (line.digits == 0 && at < bytes.size()) return {.status = LineStatus::kBad};
  const size_t padding = at;
  while (at < bytes.size() && (bytes[at] == ' ' || bytes[at] == '\t')) {
    if (++at - padding > most_padding_bytes) return {.status = LineStatus::kBad};
  }
  if (at < bytes.size() && bytes[at] == ';') {
    for (; at < bytes.size() && bytes[at] != '\r'; ++at) {
      if (IsControl(static_cast<unsigned char>(bytes[at])) ||
          ++line.extension_bytes > most_extension_bytes) {
        return {.status = LineStatus::kBad};
      }
    }
  }
  return WithEnd(line, bytes, at);
}

TrailerLine JudgeTrailerLine(std::string_view bytes, size_t most_bytes) {
  // A folded line starts with a space, which cannot start a name.
  size_t at = 0;
  while (at < bytes.size() && IsTokenChar(static_cast<unsigned char>(bytes[at]))) {
    if (++at + 2 > most_bytes) return {LineStatus::kBad};
  }
  if (at == bytes.size()) return {};
  if (at == 0) return WithEnd(TrailerLine(), bytes, 0);
  if (bytes[at] != ':') return {LineStatus::kBad};
  for (; at < bytes.size() && bytes[at] != '\r'; ++at) {
    if (IsControl(static_cast<unsigned char>(bytes[at])) || at + 3 > most_bytes) {
      return {LineStatus::kBad};
    }
  }
  return WithEnd(TrailerLine(), bytes, at);
}

ChunkGuard::Piece ChunkGuard::Next(std::string_view bytes) {
  size_t consumed = 0;
  switch (state_) {
    case State::kPayload: {
      const size_t taken = static_cast<size_t>(std::min<uint64_t>(remaining_, bytes.size()));
      if (taken == 0) return {};
      remaining_ -= taken;
      if (remaining_ == 0) state_ = State::kPayloadEnd;
      return {Kind::kPayload, taken, bytes.substr(0, taken)};
    }
    case State::kPayloadEnd:
      if (!std::string_view("\r\n").starts_with(bytes.substr(0, 2))) return {Kind::kBad};
      if (bytes.size() < 2) return {};
      consumed = 2;
      state_ = State::kLine;
      [[fallthrough]];
    case State::kLine:
      return TakeLine(bytes.substr(consumed), consumed);
    case State::kTrailers:
      return TakeTrailers(bytes, 0);
  }
  return {Kind::kBad};
}

ChunkGuard::Piece ChunkGuard::TakeLine(std::string_view bytes, size_t consumed) {
  const ChunkLine line =
      JudgeChunkLine(bytes, std::min(limits_.max_extension_bytes, kMaxLineExtensionBytes),
                     limits_.max_padding_bytes);
  if (line.status == LineStatus::kNeedMore) return {Kind::kNeedMore, consumed};
  if (line.status == LineStatus::kBad) return {Kind::kBad, consumed};
  limits_.max_extension_bytes -= line.extension_bytes;
  if (line.chunk_bytes == 0) {
    state_ = State::kTrailers;
    return TakeTrailers(bytes.substr(line.bytes), consumed + line.bytes);
  }
  if (line.chunk_bytes > limits_.max_body_bytes - total_) return {Kind::kTooLarge, consumed};
  total_ += line.chunk_bytes;
  remaining_ = line.chunk_bytes;
  state_ = State::kPayload;
  std::memcpy(line_ + 2, bytes.data(), line.digits);
  std::memcpy(line_ + 2 + line.digits, "\r\n", 2);
  const size_t skipped = after_chunk_ ? 0 : 2;
  after_chunk_ = true;
  return {Kind::kLine, consumed + line.bytes,
          std::string_view(line_ + skipped, 2 + line.digits + 2 - skipped)};
}

ChunkGuard::Piece ChunkGuard::TakeTrailers(std::string_view bytes, size_t consumed) {
  while (true) {
    const TrailerLine line = JudgeTrailerLine(bytes, limits_.max_trailer_bytes);
    if (line.status == LineStatus::kNeedMore) return {Kind::kNeedMore, consumed};
    if (line.status == LineStatus::kBad) return {Kind::kBad, consumed};
    consumed += line.bytes;
    if (line.bytes == 2) {
      return {Kind::kEnd, consumed, std::string_view("\r\n0\r\n\r\n").substr(after_chunk_ ? 0 : 2)};
    }
    limits_.max_trailer_bytes -= line.bytes;
    bytes.remove_prefix(line.bytes);
  }
}

}  // namespace tollgate::http
