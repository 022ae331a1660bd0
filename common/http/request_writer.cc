#include "common/http/request_writer.h"

#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <string_view>

#include "common/http/head_arena.h"

namespace tollgate::http {
namespace {

namespace beast = boost::beast;
using Fields = beast::http::basic_fields<HeadAllocator<char>>;
using RequestHead = beast::http::request_header<Fields>;

// Beast counts the bytes of a name or value in 16 bits, and throws beyond.
constexpr size_t kMaxFieldBytes = 65'000;

std::string HostOf(const Origin& origin) {
  const bool v6 = origin.host.find(':') != std::string::npos;
  std::string host = v6 ? "[" + origin.host + "]" : origin.host;
  if (origin.port != (origin.tls ? 443 : 80)) host += ":" + std::to_string(origin.port);
  return host;
}

// Line ends in a value become spaces, so that a value cannot inject a header.
bool AddField(RequestHead& head, std::string_view name, std::string_view value) {
  if (name.size() > kMaxFieldBytes || value.size() > kMaxFieldBytes) return false;
  constexpr std::string_view kForbidden("\r\n\0", 3);
  std::string clean;
  if (value.find_first_of(kForbidden) != std::string_view::npos) {
    clean = value;
    for (char& c : clean) c = kForbidden.find(c) == std::string_view::npos ? c : ' ';
    value = clean;
  }
  // Written only: Beast need not know which field it is.
  head.insert(beast::http::field::unknown, {name.data(), name.size()},
              {value.data(), value.size()});
  return true;
}

}  // namespace

std::string WriteRequestHead(const ClientRequest& request) {
  HeadArena arena;
  RequestHead head{HeadAllocator<char>(arena)};
  head.version(11);
  head.method_string(request.method);
  head.target(request.target);
  bool fits = AddField(head, "host", HostOf(request.origin));
  for (const auto& [name, value] : request.headers) fits = fits && AddField(head, name, value);
  if (!request.body.empty() || (request.method != "GET" && request.method != "HEAD")) {
    fits = fits && AddField(head, "content-length", std::to_string(request.body.size()));
  }
  std::string text;
  if (!fits) return text;
  text.reserve(256);
  const Fields::writer writer(head, head.version(), head.method());
  const auto buffers = writer.get();
  for (const auto bytes : beast::buffers_range_ref(buffers)) {
    text.append(static_cast<const char*>(bytes.data()), bytes.size());
  }
  return text;
}

}  // namespace tollgate::http
