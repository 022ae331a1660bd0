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
  // Empty: every login is refused.
  explicit LoginToken(const std::string& token, const Clock& clock = SystemClock::Get());

  enum class Verdict { kAccepted, kRefused, kThrottled };
  struct Answer {
    Verdict verdict = Verdict::kRefused;
    int64_t wait_ms = 0;  // of kThrottled: when the next try makes sense
  };
  // Counts wrong tokens by address. Above the limit every request of the address is refused, even
  // one with the right token: otherwise guessing could go on.
  Answer Check(const http::HttpRequest& request);

  // Whether the request has the token. The comparison takes constant time.
  bool Matches(const http::HttpRequest& request) const;

 private:
  const bool configured_;
  const std::string digest_;
  const Clock& clock_;
  AddressLimiter guesses_{{.interval_us = 6'000'000, .burst = 10}};
};

}  // namespace tollgate::dashboard
