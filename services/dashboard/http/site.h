// What is shown in a browser: the web application, or without it one static page.
#pragma once

#include <memory>
#include <string>

#include "common/error/error.h"
#include "common/http/exchange.h"
#include "services/dashboard/http/web_files.h"

namespace tollgate::dashboard {

class Site {
 public:
  // base_url: of the public API. web: null shows the static page.
  explicit Site(const std::string& base_url, std::unique_ptr<const WebFiles> web = nullptr);

  http::HttpResponse Handle(const http::HttpRequest& request) const;

  // The response to a request that could not be read, or that failed.
  static http::HttpResponse RenderError(const Error& error);

 private:
  const std::string page_;
  const std::unique_ptr<const WebFiles> web_;
};

}  // namespace tollgate::dashboard
