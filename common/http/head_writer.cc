#include "common/http/head_writer.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <ctime>

namespace tollgate::http {
namespace {

std::string_view ReasonOf(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "";
  }
}

}  // namespace

void AppendStatusLine(std::string& head, int status) {
  if (status == 200) {
    head.append("HTTP/1.1 200 OK\r\n");
    return;
  }
  head.append("HTTP/1.1 ");
  AppendNumber(head, static_cast<uint64_t>(status));
  head.push_back(' ');
  head.append(ReasonOf(status)).append("\r\n");
}

void AppendDate(std::string& head) {
  thread_local time_t formatted_for = 0;
  thread_local char line[48];
  thread_local size_t size = 0;
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (now.tv_sec != formatted_for || size == 0) {
    std::tm utc{};
    gmtime_r(&now.tv_sec, &utc);
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    // Not strftime: the names of days must not depend on the locale.
    size = static_cast<size_t>(std::snprintf(
        line, sizeof line, "date: %s, %02u %s %04u %02u:%02u:%02u GMT\r\n", kDays[utc.tm_wday],
        static_cast<unsigned>(utc.tm_mday) % 100, kMonths[utc.tm_mon],
        static_cast<unsigned>(utc.tm_year + 1900) % 10000, static_cast<unsigned>(utc.tm_hour) % 100,
        static_cast<unsigned>(utc.tm_min) % 100, static_cast<unsigned>(utc.tm_sec) % 100));
    formatted_for = now.tv_sec;
  }
  head.append(line, size);
}

void AppendField(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  if (value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos) {
    head.append(value);
  } else {
    for (char c : value) head.push_back(c == '\r' || c == '\n' || c == '\0' ? ' ' : c);
  }
  head.append("\r\n");
}

void AppendNumber(std::string& out, uint64_t number) {
  char digits[20];
  auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, static_cast<size_t>(end - digits));
}

void AppendHex(std::string& out, uint64_t number) {
  char digits[16];
  auto end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
  out.append(digits, static_cast<size_t>(end - digits));
}

}  // namespace tollgate::http
