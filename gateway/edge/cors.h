// CORS for the configured origins (decision 35). Disabled when none is configured.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/edge/exchange.h"

namespace tollgate::gateway {

class Cors {
 public:
  explicit Cors(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  bool enabled() const { return !origins_.empty(); }
  // Whether this is a preflight request from an allowed origin.
  bool IsPreflight(const HttpRequest& request) const;
  HttpResponse AnswerPreflight(const HttpRequest& request) const;
  // The CORS headers for any response to this request.
  Headers ResponseHeaders(const HttpRequest& request) const;

 private:
  bool Allows(std::string_view origin) const;
  std::vector<std::string> origins_;
};

}  // namespace tollgate::gateway
