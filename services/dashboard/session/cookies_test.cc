#include "services/dashboard/session/cookies.h"

#include <gtest/gtest.h>

namespace tollgate::dashboard {
namespace {

http::HttpRequest With(const std::string& cookie) {
  http::HttpRequest request;
  request.headers.emplace_back("cookie", cookie);
  return request;
}

TEST(CookiesTest, OverTlsTheyAreBoundToTheHost) {
  const Cookies cookies(true);
  EXPECT_EQ(cookies.SetSession("abc", 60),
            "__Host-tollgate=abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=60; Secure");
  EXPECT_EQ(cookies.EndSession(),
            "__Host-tollgate=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0; Secure");
  EXPECT_EQ(cookies.Session(With("a=b; __Host-tollgate=xyz; c=d")), "xyz");
  EXPECT_EQ(cookies.Session(With("tollgate=xyz")), "") << "one that another host could have set";
}

TEST(CookiesTest, OnlyTheWholeNameCounts) {
  const Cookies cookies(false);
  EXPECT_EQ(cookies.SetSession("abc", 60),
            "tollgate=abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=60");
  EXPECT_EQ(cookies.Session(With("xtollgate=1; tollgatex=2; tollgate=3")), "3");
  EXPECT_EQ(cookies.Session(With("tollgate-flow=f")), "");
  EXPECT_EQ(cookies.Flow(With("tollgate=s; tollgate-flow=f")), "f");
  EXPECT_EQ(cookies.Session(With("")), "");
  EXPECT_EQ(cookies.Session(With(";;=;tollgate")), "");
  EXPECT_EQ(cookies.Session(http::HttpRequest()), "");
}

// Without https, cookies are safe only on this machine.
TEST(CookiesTest, AnAddressThatOthersReachWithoutHttpsIsARisk) {
  for (const char* listen : {"127.0.0.1:8081", "localhost:8081", "[::1]:8081"}) {
    EXPECT_EQ(CookieRisk(listen, ""), "") << listen;
    EXPECT_EQ(CookieRisk(listen, "http://localhost:8081"), "") << listen;
    EXPECT_EQ(CookieRisk(listen, "https://dashboard.example.com"), "") << listen;
    EXPECT_NE(CookieRisk(listen, "http://dashboard.example.com"), "")
        << "behind a proxy: " << listen;
  }
  for (const char* listen : {"0.0.0.0:8081", "[::]:8081", "10.0.0.1:80", ":8081", "dashboard:80",
                             "localhost.example.com:80"}) {
    EXPECT_NE(CookieRisk(listen, ""), "") << listen;
    EXPECT_NE(CookieRisk(listen, "http://10.0.0.1:80"), "") << listen;
    EXPECT_EQ(CookieRisk(listen, "https://dashboard.example.com"), "") << listen;
  }
}

}  // namespace
}  // namespace tollgate::dashboard
