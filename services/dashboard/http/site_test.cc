#include "services/dashboard/http/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tollgate::dashboard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Header(const http::HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

http::HttpResponse Send(const std::string& method, const std::string& path) {
  http::HttpResponse response =
      Site("http://127.0.0.1:8080/").Handle({.method = method, .path = path});
  EXPECT_THAT(Header(response, "content-security-policy"), HasSubstr("frame-ancestors 'none'"));
  EXPECT_EQ(Header(response, "cache-control"), "no-store");
  return response;
}

TEST(Site, ThePageIsPublicAndShowsTheBaseUrl) {
  const auto page = Send("GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(Header(page, "content-type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("<code>http://127.0.0.1:8080/v1</code>"));
  EXPECT_THAT(page.body, Not(HasSubstr("%BASE%")));
  EXPECT_THAT(page.body, Not(HasSubstr("<script")));
  EXPECT_THAT(page.body, Not(HasSubstr("style=")));
  const auto css = Send("GET", "/style.css");
  EXPECT_EQ(css.status, 200);
  EXPECT_EQ(Header(css, "content-type"), "text/css; charset=utf-8");
}

TEST(Site, OtherPathsAreNotFound) {
  for (const char* path : {"/other", "/api/admin/workspaces", "/admin", "/session"}) {
    EXPECT_EQ(Send("GET", path).status, 404) << path;
  }
  EXPECT_EQ(Send("POST", "/").status, 404);
}

}  // namespace
}  // namespace tollgate::dashboard
