// Writes the heads of requests and responses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::http {

// "HTTP/1.1 200 OK\r\n".
void AppendStatusLine(std::string& head, int status);
// "date: Sat, 21 Nov 2026 04:05:06 GMT\r\n"; formatted once per second and thread.
void AppendDate(std::string& head);
// "name: value\r\n". Line ends in the value become spaces, so that a value cannot inject a header.
void AppendField(std::string& head, std::string_view name, std::string_view value);
void AppendNumber(std::string& out, uint64_t number);
// Lower-case hexadecimal, for chunk sizes.
void AppendHex(std::string& out, uint64_t number);

}  // namespace tollgate::http
