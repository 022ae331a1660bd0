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

}  // namespace
}  // namespace tollgate::dashboard
