// Puts the heads of messages together, byte by byte as they go out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::http {

// "HTTP/1.1 200 OK\r\n".
void AppendStatusLine(std::string& head, int status);
// "date: Sat, 21 Nov 2026 04:05:06 GMT\r\n"; put together once a second.
void AppendDate(std::string& head);
// "name: value\r\n". A line end in the value becomes a space, so that no value can forge a field.
void AppendField(std::string& head, std::string_view name, std::string_view value);
void AppendNumber(std::string& out, uint64_t number);
// Lower-case hexadecimal, as chunk sizes are written.
void AppendHex(std::string& out, uint64_t number);

}  // namespace tollgate::http
