// A blocking HTTP call with libcurl, for providers (payments, OpenID Connect) and the command line.
// Not on a loop or a gRPC thread. Certificates are checked against the system's authorities.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tollgate::http {

using Form = std::vector<std::pair<std::string, std::string>>;

struct HttpCall {
  std::string method = "GET";
  std::string url;
  // Sent as "Authorization: Bearer" unless empty; never logged.
  std::string bearer;
  std::vector<std::pair<std::string, std::string>> headers;
  // Sent as application/x-www-form-urlencoded: in the body of a POST, or in the query of a GET.
  Form form;
  // Sent instead of the form, as the application/json body of a POST.
  std::string json;
  int connect_timeout_ms = 5'000;
  int timeout_ms = 20'000;
  // PEM file with authorities that are trusted in addition to the system's; empty: none.
  std::string authority_file;
  // Whether to use the proxies of the environment (https_proxy).
  bool use_proxy = true;
  // Setting it to true ends the call within about a second, as kLost. May be null.
  const std::atomic<bool>* abort = nullptr;
};

struct HttpAnswer {
  enum class Outcome {
    kAnswered,
    kNotSent,  // the connection could not be made
    kLost,     // no complete response; the call may have taken effect
  };
  Outcome outcome = Outcome::kLost;
  int status = 0;
  std::string body;
  std::string error;  // error of the transport
  // Microseconds from the call to the first byte of the body; 0: no body.
  int64_t first_byte_us = 0;
};

// A response above 4 MiB is kLost.
HttpAnswer Send(const HttpCall& call);

// Encodes "a b" as "a%20b".
std::string PercentEncode(std::string_view text);

}  // namespace tollgate::http
