// The configured login token, as a bearer token.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/address_limiter.h"
#include "common/base/clock.h"
#include "common/http/exchange.h"

namespace tollgate::dashboard {

class LoginToken {
 public:
  // An empty token refuses every login.
  explicit LoginToken(const std::string& token, const Clock& clock = SystemClock::Get());

  enum class Verdict { kAccepted, kRefused, kThrottled };
  struct Answer {
    Verdict verdict = Verdict::kRefused;
    int64_t wait_ms = 0;  // for kThrottled: time until the next attempt
  };
  // Counts wrong tokens by address. Above the limit, even a right token is refused; otherwise
  // guessing could continue.
  Answer Check(const http::HttpRequest& request);

  // Compares the token in constant time.
  bool Matches(const http::HttpRequest& request) const;

 private:
  const bool configured_;
  const std::string digest_;
  const Clock& clock_;
  AddressLimiter guesses_{{.interval_us = 6'000'000, .burst = 10}};
};

}  // namespace tollgate::dashboard
