#include "common/http/response_reader.h"

#include <algorithm>
#include <cstring>

namespace tollgate::http {
namespace {

namespace beast = boost::beast;
using boost::system::error_code;
using BodyFraming = ResponseFraming::Body;

// Engines may pad chunk sizes (some reserve a fixed width). The padding of one line is limited, the
// sum is not: a long answer has many lines.
constexpr ChunkLimits kChunkLimits = {.max_extension_bytes = 64 * 1024, .max_padding_bytes = 256};

constexpr char kNoAgreement[] = "the framing is ambiguous";

}  // namespace

bool ResponseReader::Put(std::string_view bytes) {
  parser_->get().body() = {};
  while (!bytes.empty()) {
    if (parser_->is_done()) return false;
    error_code error;
    const size_t used = parser_->put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    if ((error && error != beast::http::error::need_more) || used == 0) return false;
    bytes.remove_prefix(used);
  }
  return true;
}

// Whether Beast takes all of the bytes as payload.
bool ResponseReader::PutPayload(std::string_view bytes) {
  return Put(bytes) && parser_->get().body().data() == bytes.data() &&
         parser_->get().body().size() == bytes.size();
}

bool ResponseReader::GuardAndParserAgree() const {
  const auto length = parser_->content_length();
  return parser_->is_header_done() &&
         static_cast<int>(parser_->get().result_int()) == framing_.status &&
         parser_->chunked() == framing_.chunked && length.has_value() == framing_.has_length &&
         length.value_or(0) == framing_.content_length &&
         parser_->keep_alive() == framing_.keep_alive &&
         parser_->is_done() == (framing_.body == BodyFraming::kNone) &&
         parser_->need_eof() == (framing_.body == BodyFraming::kUntilClose);
}

const char* ResponseReader::ReadHead(std::string_view head, bool to_head_request,
                                     ResponseHead* response) {
  if (const char* wrong = JudgeResponseHead(head, to_head_request, &framing_)) return wrong;
  parser_.emplace();
  // Limits are enforced by the guard and the size of the input buffer.
  parser_->header_limit(UINT32_MAX);
  parser_->body_limit(boost::none);
  parser_->skip(to_head_request);
  constexpr size_t kStatus = std::string_view("HTTP/1.1 200").size();
  bool parsed = true;
  if (head[kStatus] == '\r') {
    // Without a reason phrase the space before it may be missing, but Beast requires it.
    char line[kStatus + 3];
    std::memcpy(line, head.data(), kStatus);
    std::memcpy(line + kStatus, " \r\n", 3);
    parsed = Put({line, sizeof line});
    head.remove_prefix(kStatus + 2);
  }
  if (!parsed || !Put(head) || !parser_->is_header_done()) return "malformed head";
  if (!GuardAndParserAgree()) return kNoAgreement;

  response->status = framing_.status;
  response->headers.clear();
  response->headers.reserve(12);
  for (const auto& field : parser_->get()) {
    std::string name(field.name_string());
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    response->headers.emplace_back(std::move(name), std::string(field.value()));
  }
  remaining_ = framing_.content_length;
  chunks_ = ChunkGuard(kChunkLimits);
  return nullptr;
}

ResponseReader::Body ResponseReader::ReadBody(char* bytes, size_t size) {
  if (framing_.body == BodyFraming::kNone) return {Status::kDone};
  if (size == 0) return {};
  switch (framing_.body) {
    case BodyFraming::kNone:
      break;
    case BodyFraming::kUntilClose:
      if (!PutPayload({bytes, size})) return {Status::kBad};
      return {Status::kNeedMore, size, {bytes, size}};
    case BodyFraming::kFixedLength: {
      size = static_cast<size_t>(std::min<uint64_t>(size, remaining_));
      remaining_ -= size;
      if (!PutPayload({bytes, size}) || parser_->is_done() != (remaining_ == 0)) {
        return {Status::kBad};
      }
      return {remaining_ == 0 ? Status::kDone : Status::kNeedMore, size, {bytes, size}};
    }
    case BodyFraming::kChunked:
      return ReadChunks(bytes, size);
  }
  return {Status::kBad};
}

ResponseReader::Body ResponseReader::ReadChunks(char* bytes, size_t size) {
  Body body;
  char* payload = bytes;
  size_t produced = 0;
  while (true) {
    const ChunkGuard::Piece piece = chunks_.Next({bytes + body.consumed, size - body.consumed});
    char* const at = bytes + body.consumed;
    body.consumed += piece.consumed;
    switch (piece.kind) {
      case ChunkGuard::Kind::kPayload:
        if (!PutPayload(piece.feed)) return {Status::kBad};
        // The payload of the first chunk needs no move.
        if (produced == 0) {
          payload = at;
        } else if (payload + produced != at) {
          std::memmove(payload + produced, at, piece.feed.size());
        }
        produced += piece.feed.size();
        break;
      case ChunkGuard::Kind::kLine:
        if (!Put(piece.feed) || !parser_->get().body().empty()) return {Status::kBad};
        break;
      case ChunkGuard::Kind::kEnd:
        if (!Put(piece.feed) || !parser_->is_done()) return {Status::kBad};
        body.status = Status::kDone;
        [[fallthrough]];
      case ChunkGuard::Kind::kNeedMore:
        body.payload = {payload, produced};
        return body;
      case ChunkGuard::Kind::kBad:
      case ChunkGuard::Kind::kTooLarge:
        return {Status::kBad};
    }
  }
}

bool ResponseReader::ReadEnd() {
  if (framing_.body != BodyFraming::kUntilClose) return false;
  error_code error;
  parser_->put_eof(error);
  return !error && parser_->is_done();
}

}  // namespace tollgate::http
