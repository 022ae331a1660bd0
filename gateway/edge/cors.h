// Lets browsers of listed origins call the API (decisions.md 35). Off when no origin is listed.
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
  // A question that a browser asks before the request itself, from an origin that may call.
  bool IsPreflight(const HttpRequest& request) const;
  HttpResponse AnswerPreflight(const HttpRequest& request) const;
  // Header lines for any answer to this request.
  void AppendHeaders(const HttpRequest& request, std::string& head) const;

 private:
  bool Allows(std::string_view origin) const;
  std::vector<std::string> origins_;
};

}  // namespace tollgate::gateway
