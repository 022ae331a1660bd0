// One blocking HTTP call with libcurl, for providers (payments, OpenID Connect) and the command
// line: never on a loop or a gRPC thread. Certificates are checked against the system's
// authorities.
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
  // Sent as application/x-www-form-urlencoded: in the body of a POST, in the query of a GET.
  Form form;
  // Sent as the body of a POST, as application/json, instead of the form.
  std::string json;
  int connect_timeout_ms = 5'000;
  int timeout_ms = 20'000;
  // PEM file with authorities, in addition to the system's; empty: only those.
  std::string authority_file;
  // Whether the proxies of the environment (https_proxy) are used.
  bool use_proxy = true;
  // True ends the call within about a second, as kLost. May be null.
  const std::atomic<bool>* abort = nullptr;
};

struct HttpAnswer {
  enum class Outcome {
    kAnswered,
    kNotSent,  // the connection could not be made
    kLost,     // no complete answer: the call may have had its effect
  };
  Outcome outcome = Outcome::kLost;
  int status = 0;
  std::string body;
  std::string error;  // of the transport
  // From the call to the first byte of the body, in microseconds; 0: it has none.
  int64_t first_byte_us = 0;
};

// Answers above 4 MiB are kLost.
HttpAnswer Send(const HttpCall& call);

// "a b" is "a%20b".
std::string PercentEncode(std::string_view text);

}  // namespace tollgate::http
