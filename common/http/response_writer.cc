#include "common/http/response_writer.h"

#include <boost/beast/http/chunk_encode.hpp>
#include <charconv>
#include <cstdio>
#include <ctime>

namespace tollgate::http {
namespace {

namespace beast = boost::beast;

using Field = beast::http::field;

// "Sat, 21 Nov 2026 04:05:06 GMT"; formatted once per second and thread.
std::string_view Date() {
  thread_local time_t formatted_for = 0;
  thread_local char text[40];
  thread_local size_t size = 0;
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec != formatted_for || size == 0) {
    std::tm utc{};
    gmtime_r(&now.tv_sec, &utc);
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    // strftime would use the locale's names of days.
    size = static_cast<size_t>(std::snprintf(
        text, sizeof text, "%s, %02u %s %04u %02u:%02u:%02u GMT", kDays[utc.tm_wday],
        static_cast<unsigned>(utc.tm_mday) % 100, kMonths[utc.tm_mon],
        static_cast<unsigned>(utc.tm_year + 1900) % 10000, static_cast<unsigned>(utc.tm_hour) % 100,
        static_cast<unsigned>(utc.tm_min) % 100, static_cast<unsigned>(utc.tm_sec) % 100));
    formatted_for = now.tv_sec;
  }
  return {text, size};
}

}  // namespace

ResponseWriter::ResponseWriter(int status) : head_(HeadAllocator<char>(arena_)) {
  head_.version(11);
  head_.result(static_cast<unsigned>(status));
  head_.insert(Field::date, "date", Date());
}

void ResponseWriter::Add(std::string_view name, std::string_view value) {
  AddField(head_, name, value);
}

void ResponseWriter::Add(const Headers& headers) {
  for (const auto& [name, value] : headers) Add(name, value);
}

void ResponseWriter::SetLength(uint64_t bytes) {
  char digits[20];
  const char* end = std::to_chars(digits, digits + sizeof digits, bytes).ptr;
  head_.insert(Field::content_length, "content-length",
               std::string_view(digits, static_cast<size_t>(end - digits)));
}

void ResponseWriter::SetChunked() {
  head_.insert(Field::transfer_encoding, "transfer-encoding", "chunked");
}

void ResponseWriter::AppendTo(std::string& out) {
  const HeadFields::writer writer(head_, head_.version(), head_.result_int());
  AppendBuffers(out, writer.get());
}

std::string ChunkHeader(size_t payload_bytes) {
  std::string header;  // short enough to need no allocation
  AppendBuffers(header, beast::http::chunk_header(payload_bytes));
  return header;
}

std::string LastChunk(const Headers& trailers) {
  std::string out = "0\r\n";
  for (const auto& [name, value] : trailers) {
    out += name + ": ";
    for (const char c : value) out += c == '\r' || c == '\n' ? ' ' : c;
    out += kChunkEnd;
  }
  out += kChunkEnd;
  return out;
}

}  // namespace tollgate::http
