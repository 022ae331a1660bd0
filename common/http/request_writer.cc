#include "common/http/request_writer.h"

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <string_view>

#include "common/http/head_fields.h"

namespace tollgate::http {
namespace {

namespace beast = boost::beast;
using RequestHead = beast::http::request_header<HeadFields>;

std::string HostOf(const Origin& origin) {
  const bool v6 = origin.host.find(':') != std::string::npos;
  std::string host = v6 ? "[" + origin.host + "]" : origin.host;
  if (origin.port != (origin.tls ? 443 : 80)) host += ":" + std::to_string(origin.port);
  return host;
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
  const HeadFields::writer writer(head, head.version(), head.method());
  AppendBuffers(text, writer.get());
  return text;
}

}  // namespace tollgate::http
