#include "services/dashboard/http/login_token.h"

#include <string_view>

#include "common/base/crypto.h"
#include "common/observability/metrics.h"

namespace tollgate::dashboard {
namespace {

prometheus::Counter& Logins(const std::string& result) {
  return metrics::Counter("tollgate_dashboard_logins_total",
                          "Requests to the admin API, by result of the login.",
                          {{"result", result}});
}

void Count(const std::string& result) { Logins(result).Increment(); }

}  // namespace

LoginToken::LoginToken(const std::string& token, const Clock& clock)
    : configured_(!token.empty()), digest_(Sha256(token)), clock_(clock) {
  // Registers all results at 0, so that alerts see the first increase.
  for (const char* result : {"accepted", "refused", "throttled"}) Logins(result);
}

bool LoginToken::Matches(const http::HttpRequest& request) const {
  constexpr std::string_view kScheme = "Bearer ";
  std::string_view token = request.header("authorization");
  const bool bearer = token.starts_with(kScheme);
  if (bearer) token.remove_prefix(kScheme.size());
  // Hashes have equal lengths, so the timing does not depend on the length of the token.
  const bool equal = ConstantTimeEquals(Sha256(token), digest_);
  return bearer && equal && configured_;
}

LoginToken::Answer LoginToken::Check(const http::HttpRequest& request) {
  const int64_t now_us = clock_.MonotonicUs();
  if (const int64_t wait_us = guesses_.WaitUs(request.peer_address, now_us); wait_us > 0) {
    Count("throttled");
    return {Verdict::kThrottled, (wait_us + 999) / 1000};
  }
  if (Matches(request)) {
    Count("accepted");
    return {Verdict::kAccepted};
  }
  Count("refused");
  // A request without a token does not count as a guess.
  if (!request.header("authorization").empty()) guesses_.Take(request.peer_address, now_us);
  return {Verdict::kRefused};
}

}  // namespace tollgate::dashboard
