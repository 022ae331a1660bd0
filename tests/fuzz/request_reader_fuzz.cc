// Requests, read by the guard with Beast behind it: every split of the bytes gives the same request
// or the same refusal; what is accepted, Beast alone understands the same way, up to the last byte;
// and nothing in it could be read in two ways.
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>

#include "common/http/request_reader.h"
#include "tests/fuzz/fuzz.h"

namespace tollgate::http {
namespace {

namespace beast = boost::beast;
using Status = RequestReader::Status;

struct Read {
  Status status = Status::kNeedMore;
  size_t consumed = 0;
  HttpRequest request;
  Framing framing;
};

template <typename Size>
Read ReadAll(std::string_view input, const RequestLimits& limits, Size next_size) {
  RequestReader reader;
  Read all;
  size_t come = 0;
  bool in_body = false;
  while (true) {
    // Copies the bytes, like a buffer that moves when it grows.
    const std::string bytes(input.substr(all.consumed, come - all.consumed));
    const RequestReader::Step step = in_body ? reader.ReadBody(bytes, &all.request.body)
                                             : reader.ReadHead(bytes, limits, &all.request);
    FUZZ_CHECK(step.consumed <= bytes.size());
    all.consumed += step.consumed;
    all.status = step.status;
    all.framing = reader.framing();
    if (step.status == Status::kHead) {
      FUZZ_CHECK(!in_body);
      in_body = true;
      continue;
    }
    if (step.status != Status::kNeedMore || come == input.size()) break;
    come += next_size(input.size() - come);
  }
  if (all.status == Status::kBad) FUZZ_CHECK(reader.reason() != nullptr);
  return all;
}

bool IsClean(std::string_view text) {
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

void CheckRequest(const HttpRequest& request, const RequestLimits& limits) {
  FUZZ_CHECK(!request.method.empty());
  FUZZ_CHECK(!request.path.empty());
  for (const std::string* text : {&request.path, &request.query}) {
    FUZZ_CHECK(IsClean(*text) && text->find(' ') == std::string::npos);
  }
  FUZZ_CHECK(request.headers.size() <= limits.head.max_fields);
  FUZZ_CHECK(request.body.size() <= limits.chunks.max_body_bytes);
  for (const auto& [name, value] : request.headers) {
    FUZZ_CHECK(!name.empty());
    for (const char c : name) {
      FUZZ_CHECK(IsTokenChar(static_cast<unsigned char>(c)) && !(c >= 'A' && c <= 'Z'));
    }
    FUZZ_CHECK(IsClean(value));
    // Repeated credentials are joined with a comma, also with an empty one.
    const bool joined = name == "authorization" || name == "x-api-key";
    FUZZ_CHECK(joined || TrimSpace(value) == value);
  }
}

// Reads the accepted bytes again, by Beast without the guard. Beast treats trailers as headers,
// which it may refuse, and which may change its view of the connection.
void CompareWithBeast(std::string_view bytes, const Read& read) {
  beast::http::request_parser<beast::http::string_body> parser;
  parser.header_limit(64 * 1024);
  parser.body_limit(boost::none);
  parser.eager(true);
  beast::error_code error;
  const size_t consumed = parser.put(asio::buffer(bytes.data(), bytes.size()), error);
  if (error && read.framing.chunked) return;
  FUZZ_CHECK(!error);
  FUZZ_CHECK(parser.is_done());
  FUZZ_CHECK(consumed == read.consumed);
  const auto& message = parser.get();
  FUZZ_CHECK(read.framing.chunked || parser.keep_alive() == read.framing.keep_alive ||
             message.count(beast::http::field::proxy_connection) > 0);
  FUZZ_CHECK(parser.chunked() == read.framing.chunked);
  const auto target = message.target();
  FUZZ_CHECK(message.method_string() == read.request.method);
  std::string path = read.request.path;
  if (target.find('?') != beast::string_view::npos) path += "?" + read.request.query;
  FUZZ_CHECK(target == path);
  FUZZ_CHECK(message.body() == read.request.body);
}

void Check(std::string_view input, const RequestLimits& limits) {
  fuzz::Cuts cuts(input);
  const Read whole = ReadAll(input, limits, [](size_t left) { return left; });
  const Read pieces = ReadAll(input, limits, [&](size_t left) { return cuts.Next(left); });
  FUZZ_CHECK(whole.status == pieces.status);
  if (whole.status == Status::kBad) return;
  FUZZ_CHECK(whole.request.body == pieces.request.body);
  FUZZ_CHECK(whole.request.headers == pieces.request.headers);
  if (whole.status != Status::kDone) return;
  FUZZ_CHECK(whole.consumed == pieces.consumed);
  CheckRequest(whole.request, limits);
  CompareWithBeast(input.substr(0, whole.consumed), whole);
}

}  // namespace
}  // namespace tollgate::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = tollgate::fuzz::Text(data, size);
  tollgate::http::Check(input, {});
  tollgate::http::Check(
      input, {.max_body_bytes = 20,
              .chunks = {.max_body_bytes = 20, .max_extension_bytes = 8, .max_trailer_bytes = 16}});
  return 0;
}
