#include "services/dashboard/http/site.h"

#include "common/json/writer.h"
#include "services/dashboard/http/page.h"

namespace tollgate::dashboard {
namespace {

http::HttpResponse Make(int status, std::string_view type, std::string body) {
  http::HttpResponse response{.status = status, .body = std::move(body)};
  response.headers.emplace_back("content-type", type);
  AddSecurityHeaders(response.headers);
  return response;
}

http::HttpResponse ErrorResponse(const Error& error) {
  const std::string inner = json::Writer()
                                .Text("message", error.public_message())
                                .Text("type", error.row().openai_type)
                                .Text("code", error.row().code)
                                .Null("param")
                                .Done();
  http::HttpResponse response = Make(error.row().http_status, "application/json",
                                     json::Writer().Raw("error", inner).Done() + "\n");
  if (error.retry_after_ms > 0) {
    response.headers.emplace_back("retry-after",
                                  std::to_string((error.retry_after_ms + 999) / 1000));
  }
  return response;
}

}  // namespace

Site::Site(const std::string& base_url, std::unique_ptr<const WebFiles> web)
    : page_(PageHtml(base_url)), web_(std::move(web)) {
  MakeCspReportCounter();
}

http::HttpResponse Site::RenderError(const Error& error) { return ErrorResponse(error); }

http::HttpResponse Site::Handle(const http::HttpRequest& request) const {
  const bool get = request.method == "GET";
  if (request.path == kCspReportPath && request.method == "POST") return CountCspReport();
  // Also for the pages with forms, which have no script.
  if (get && request.path == "/style.css") {
    return Make(200, "text/css; charset=utf-8", std::string(PageCss()));
  }
  if (web_) return web_->Handle(request);
  if (get && request.path == "/") return Make(200, "text/html; charset=utf-8", page_);
  return ErrorResponse(Error{.id = ErrorId::kNotFound, .message = "There is no such page."});
}

}  // namespace tollgate::dashboard
