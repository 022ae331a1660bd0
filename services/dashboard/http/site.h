// What a browser shows: the web application, or one static page if it is not built.
#pragma once

#include <memory>
#include <string>

#include "common/error/error.h"
#include "common/http/exchange.h"
#include "services/dashboard/http/web_files.h"

namespace tollgate::dashboard {

class Site {
 public:
  // base_url: address of the public API. web: null shows the static page.
  explicit Site(const std::string& base_url, std::unique_ptr<const WebFiles> web = nullptr);

  http::HttpResponse Handle(const http::HttpRequest& request) const;

  // The response to a request that could not be read, or that failed.
  static http::HttpResponse RenderError(const Error& error);

 private:
  const std::string page_;
  const std::unique_ptr<const WebFiles> web_;
};

}  // namespace tollgate::dashboard
