// Writes responses with Beast: heads by its fields and serializer, chunks by its chunk encoding.
// Internal to common/http.
#pragma once

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/http/exchange.h"
#include "common/http/head_fields.h"

namespace tollgate::http {

// The head of one response.
class ResponseWriter {
 public:
  explicit ResponseWriter(int status);

  // Line ends in the value become spaces, so that a value cannot inject a header. Values above
  // 65,000 bytes, which Beast cannot hold, are omitted.
  void Add(std::string_view name, std::string_view value);
  void Add(const Headers& headers);
  // Call at most one of these two. With neither, the body ends with the connection, or there is
  // none.
  void SetLength(uint64_t bytes);
  void SetChunked();
  // Appends the head, including the empty line at its end.
  void AppendTo(std::string& out);

 private:
  HeadArena arena_;
  boost::beast::http::response_header<HeadFields> head_;
};

// The bytes before and after the payload of a chunk. LastChunk ends the body.
std::string ChunkHeader(size_t payload_bytes);
inline constexpr std::string_view kChunkEnd = "\r\n";
// Line ends in the values become spaces.
std::string LastChunk(const Headers& trailers);

}  // namespace tollgate::http
