// The static page of the dashboard.
#pragma once

#include <string>

#include "common/error/error.h"
#include "common/http/exchange.h"

namespace tollgate::dashboard {

class Site {
 public:
  // base_url: of the public API.
  explicit Site(const std::string& base_url);

  http::HttpResponse Handle(const http::HttpRequest& request) const;

  // The response to a request that could not be read, or that failed.
  static http::HttpResponse RenderError(const Error& error);

 private:
  const std::string page_;
};

}  // namespace tollgate::dashboard
