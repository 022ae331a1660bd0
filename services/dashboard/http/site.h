// Everything that the dashboard answers: the page, and the admin API behind the login token.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "common/base/address_limiter.h"
#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/http/exchange.h"

namespace tollgate::dashboard {

// The services, for one loop.
struct Backends {
  AuthAdminClient& auth;
  BillingAdminClient& billing;
};

class Site {
 public:
  struct Options {
    // Empty: nobody can log in.
    std::string login_token;
    std::string base_url;
    const Clock* clock = &SystemClock::Get();
  };
  explicit Site(Options options);

  // The catalog as it was last pushed. Thread-safe.
  void SetCatalog(catalog::v1::Snapshot snapshot);

  // Answers a request. The request must live until the task has ended.
  Task<http::HttpResponse> Answer(const http::HttpRequest& request, Backends backends);

  // The answer to a request that could not even be read.
  static http::HttpResponse RenderError(const Error& error);

  // Whether the request shows the login token. Takes the same time whatever is wrong with it.
  bool LoggedIn(const http::HttpRequest& request) const;

 private:
  Task<http::HttpResponse> AnswerAdmin(const http::HttpRequest& request, Backends backends);

  const Options options_;
  const std::string token_digest_;
  // Of wrong tokens. An address that has guessed too often is not listened to at all, else its next
  // guess could still be right.
  AddressLimiter guesses_{{.interval_us = 6'000'000, .burst = 10}};
  const std::string page_;
  mutable std::mutex mutex_;
  std::shared_ptr<const catalog::v1::Snapshot> catalog_;
};

}  // namespace tollgate::dashboard
