#include "common/http/request_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>

namespace tollgate::http {
namespace {

namespace beast = boost::beast;

constexpr const char* kDisagreement = "ambiguous request";

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

void SetTarget(std::string_view target, HttpRequest* request) {
  const size_t question = target.find('?');
  request->path = target.substr(0, question);
  request->query = question == std::string_view::npos ? "" : target.substr(question + 1);
}

// With two credentials of a kind, neither may be used. They are joined to a list, as HTTP defines,
// which is not a valid key (H42).
bool JoinCredential(std::string_view name, std::string_view value, Headers* headers) {
  if (name != "authorization" && name != "x-api-key") return false;
  for (auto& [existing, text] : *headers) {
    if (existing != name) continue;
    text.append(", ").append(value);
    return true;
  }
  return false;
}

template <typename Fields>
void TakeHeaders(const Fields& fields, Headers* headers) {
  headers->reserve(16);
  for (const auto& field : fields) {
    std::string name(View(field.name_string()));
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    const std::string_view value = View(field.value());
    if (JoinCredential(name, value, headers)) continue;
    headers->emplace_back(std::move(name), value);
  }
}

// Whether Beast read the head as the guard did.
template <typename Parser>
bool Agree(const Parser& parser, const GuardedHead& judged) {
  const auto& message = parser.get();
  const Framing& framing = judged.framing;
  const auto length = parser.content_length();
  // Beast treats Proxy-Connection as Connection. Old clients send it; it has no meaning here.
  const bool same_keep_alive = parser.keep_alive() == framing.keep_alive ||
                               message.count(beast::http::field::proxy_connection) > 0;
  return View(message.method_string()) == judged.method &&
         View(message.target()) == judged.target &&
         message.version() == (framing.http_1_0 ? 10U : 11U) &&
         parser.chunked() == framing.chunked && same_keep_alive &&
         length.has_value() == framing.has_content_length &&
         length.value_or(0) == framing.content_length;
}

}  // namespace

void RequestReader::Reset() {
  parser_.reset();
  scanner_.Reset();
  framing_ = {};
  reason_ = nullptr;
  disagreed_ = false;
}

RequestReader::Step RequestReader::Bad(const char* reason, bool disagreed) {
  reason_ = reason;
  disagreed_ = disagreed;
  return {Status::kBad, 0};
}

RequestReader::Step RequestReader::ReadHead(std::string_view input, const RequestLimits& limits,
                                            HttpRequest* request) {
  GuardedHead judged;
  const char* wrong = nullptr;
  switch (scanner_.Scan(input, limits.head)) {
    case HeadScanner::Status::kNeedMore:
      return {};
    case HeadScanner::Status::kBad:
      wrong = scanner_.reason();
      // The readable part of the path selects the error envelope.
      JudgeRequestLine(input.substr(0, input.find_first_of("\r\n")), limits.head, &judged);
      break;
    case HeadScanner::Status::kComplete:
      wrong = JudgeRequestHead(input.substr(0, scanner_.size()), limits.head, &judged);
      break;
  }
  framing_ = judged.framing;
  if (wrong == nullptr) {
    return ParseHead(input.substr(0, scanner_.size()), judged, limits, request);
  }
  request->method = judged.method;
  SetTarget(judged.target, request);
  return Bad(wrong);
}

RequestReader::Step RequestReader::ParseHead(std::string_view head, const GuardedHead& judged,
                                             const RequestLimits& limits, HttpRequest* request) {
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(limits.head.max_head_bytes));
  parser_->body_limit(boost::none);  // checked below and by the chunk guard
  beast::error_code error;
  const size_t parsed = parser_->put(asio::buffer(head.data(), head.size()), error);
  request->method = judged.method;
  SetTarget(judged.target, request);
  if (error || parsed != head.size() || !parser_->is_header_done() || !Agree(*parser_, judged)) {
    return Bad(kDisagreement, true);
  }
  TakeHeaders(parser_->get(), &request->headers);
  if (framing_.content_length > limits.max_body_bytes) return {Status::kTooLarge, 0};
  if (framing_.chunked) {
    chunks_ = ChunkGuard(limits.chunks);
  } else if (framing_.content_length == 0) {
    parser_.reset();
    return {Status::kDone, head.size()};
  }
  return {Status::kHead, head.size()};
}

RequestReader::Step RequestReader::ReadBody(std::string_view input, std::string* body) {
  const Step step = framing_.chunked ? ReadChunks(input, body) : ReadLength(input, body);
  if (step.status == Status::kDone) {
    if (!parser_->is_done()) return Bad(kDisagreement, true);
    parser_.reset();
  }
  return step;
}

bool RequestReader::PutPayload(std::string_view bytes, std::string* body) {
  if (bytes.empty()) return true;
  beast::error_code error;
  const size_t parsed = parser_->put(asio::buffer(bytes.data(), bytes.size()), error);
  const std::string_view payload = parser_->get().body();
  if (error || parsed != bytes.size() || payload.size() != bytes.size()) return false;
  if (framing_.has_content_length && body->capacity() - body->size() < payload.size()) {
    // Grows with the received bytes, not with the announced length.
    const size_t wanted = std::max(body->size() + payload.size(), body->size() * 2);
    body->reserve(std::min(static_cast<size_t>(framing_.content_length), wanted));
  }
  body->append(payload);
  return true;
}

RequestReader::Step RequestReader::ReadLength(std::string_view input, std::string* body) {
  const size_t length = static_cast<size_t>(framing_.content_length);
  const std::string_view payload = input.substr(0, length - body->size());
  if (!PutPayload(payload, body)) return Bad(kDisagreement, true);
  return {body->size() == length ? Status::kDone : Status::kNeedMore, payload.size()};
}

RequestReader::Step RequestReader::ReadChunks(std::string_view input, std::string* body) {
  size_t consumed = 0;
  while (true) {
    const ChunkGuard::Piece piece = chunks_.Next(input.substr(consumed));
    consumed += piece.consumed;
    switch (piece.kind) {
      case ChunkGuard::Kind::kNeedMore:
        return {Status::kNeedMore, consumed};
      case ChunkGuard::Kind::kBad:
        return Bad("malformed chunked body");
      case ChunkGuard::Kind::kTooLarge:
        return {Status::kTooLarge, consumed};
      case ChunkGuard::Kind::kPayload:
        if (!PutPayload(piece.feed, body)) return Bad(kDisagreement, true);
        break;
      case ChunkGuard::Kind::kLine:
      case ChunkGuard::Kind::kEnd: {
        beast::error_code error;
        const size_t parsed =
            parser_->put(asio::buffer(piece.feed.data(), piece.feed.size()), error);
        if (error || parsed != piece.feed.size()) return Bad(kDisagreement, true);
        if (piece.kind == ChunkGuard::Kind::kEnd) return {Status::kDone, consumed};
        break;
      }
    }
  }
}

}  // namespace tollgate::http
