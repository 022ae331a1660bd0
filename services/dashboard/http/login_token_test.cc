#include "services/dashboard/http/login_token.h"

#include <gtest/gtest.h>

namespace tollgate::dashboard {
namespace {

using Verdict = LoginToken::Verdict;

constexpr char kLoginToken[] = "a-login-token-for-tests";

class LoginTokenTest : public ::testing::Test {
 protected:
  static http::HttpRequest Request(const std::string& authorization,
                                   const std::string& peer = "10.0.0.1") {
    http::HttpRequest request{.method = "GET", .path = "/admin/v1/workspaces"};
    if (!authorization.empty()) request.headers.emplace_back("authorization", authorization);
    request.peer_address = peer;
    return request;
  }
  Verdict Ask(const std::string& token, const std::string& peer) {
    return login_.Check(Request(token.empty() ? "" : "Bearer " + token, peer)).verdict;
  }

  ManualClock clock_;
  LoginToken login_{kLoginToken, clock_};
};

TEST_F(LoginTokenTest, OnlyTheWholeTokenIsAccepted) {
  EXPECT_TRUE(login_.Matches(Request(std::string("Bearer ") + kLoginToken)));
  for (const char* other :
       {"", "Bearer a", "Bearer a-login-token-for-test", "Bearer a-login-token-for-tests ",
        "Bearer A-login-token-for-tests", "Basic a-login-token-for-tests"}) {
    EXPECT_FALSE(login_.Matches(Request(other))) << other;
  }
}

TEST_F(LoginTokenTest, AnAddressThatGuessesIsThrottled) {
  // Neither a missing nor a correct token counts as a guess.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask("", "10.6.6.6"), Verdict::kRefused);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask(kLoginToken, "10.6.6.6"), Verdict::kAccepted);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask("a-guess", "10.6.6.6"), Verdict::kRefused);
  const auto throttled = login_.Check(Request("Bearer a-guess", "10.6.6.6"));
  EXPECT_EQ(throttled.verdict, Verdict::kThrottled);
  EXPECT_EQ(throttled.wait_ms, 6'000);
  EXPECT_EQ(Ask(kLoginToken, "10.6.6.6"), Verdict::kThrottled)
      << "a throttled address must not learn that its guess is right";
  EXPECT_EQ(Ask(kLoginToken, "10.0.0.1"), Verdict::kAccepted) << "other addresses are not affected";
  clock_.Advance(6'000'000);
  EXPECT_EQ(Ask("a-guess", "10.6.6.6"), Verdict::kRefused);
  EXPECT_EQ(Ask("a-guess", "10.6.6.6"), Verdict::kThrottled);
  clock_.Advance(60'000'000);
  EXPECT_EQ(Ask(kLoginToken, "10.6.6.6"), Verdict::kAccepted);
}

TEST_F(LoginTokenTest, WithoutAConfiguredTokenEveryLoginIsRefused) {
  const LoginToken closed("");
  EXPECT_FALSE(closed.Matches(Request("")));
  EXPECT_FALSE(closed.Matches(Request("Bearer ")));
}

}  // namespace
}  // namespace tollgate::dashboard
