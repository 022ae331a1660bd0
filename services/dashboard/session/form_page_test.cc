#include "services/dashboard/session/form_page.h"

#include <gtest/gtest.h>

namespace tollgate::dashboard {
namespace {

std::string HeaderOf(const http::HttpResponse& response, std::string_view name) {
  for (const auto& [field, value] : response.headers) {
    if (field == name) return std::string(value);
  }
  return "";
}

TEST(FormPageTest, APageHasOneFormForItsOwnAddressAndNoScript) {
  for (const char* path : {"link", "secondStep", "invitation", "resetPassword"}) {
    const FormPage* page = FindFormPage(path);
    ASSERT_NE(page, nullptr) << path;
    const http::HttpResponse response = RenderFormPage(*page, "secret-1");
    EXPECT_EQ(response.status, 200);
    EXPECT_NE(response.body.find("<form method=\"post\" action=\"/session/v1/" + std::string(path) +
                                 "\">"),
              std::string::npos);
    EXPECT_NE(response.body.find("value=\"secret-1\""), std::string::npos);
    EXPECT_EQ(response.body.find("<script"), std::string::npos);
    const std::string policy = HeaderOf(response, "content-security-policy");
    EXPECT_NE(policy.find("form-action 'self'"), std::string::npos) << policy;
    EXPECT_NE(policy.find("default-src 'none'"), std::string::npos) << policy;
    EXPECT_EQ(HeaderOf(response, "referrer-policy"), "same-origin")
        << "with no-referrer browsers send no usable Origin";
    EXPECT_EQ(HeaderOf(response, "cache-control"), "no-store");
  }
  EXPECT_EQ(FindFormPage("session"), nullptr);
  EXPECT_EQ(FindFormPage(""), nullptr);
}

// Text from a link or a service is escaped in the page.
TEST(FormPageTest, NothingGetsOutOfItsPlace) {
  const std::string bad = "\"><script>alert(1)</script>";
  const http::HttpResponse response = RenderFormPage(*FindFormPage("link"), bad, 401, bad);
  EXPECT_EQ(response.status, 401);
  EXPECT_EQ(response.body.find("<script"), std::string::npos) << response.body;
  EXPECT_NE(response.body.find("role=\"alert\""), std::string::npos);
  const http::HttpResponse large = RenderFormPage(*FindFormPage("link"), std::string(100'000, 'x'));
  EXPECT_LT(large.body.size(), 3'000U);
}

// The application's page gets the secret; nothing in a link changes its target.
TEST(FormPageTest, TheApplicationGetsTheSecretBehindTheHash) {
  EXPECT_EQ(WebAddress(*FindFormPage("link"), "a-B_9"), "/link#token=a-B_9");
  EXPECT_EQ(WebAddress(*FindFormPage("resetPassword"), "a\r\nx: y&b=\"<"),
            "/reset-password#token=axyb");
}

TEST(FormPageTest, ParametersAreDecoded) {
  EXPECT_EQ(ParameterOf("a=1&token=x%2Fy+z%20&token=2", "token"), "x/y z ");
  EXPECT_EQ(ParameterOf("atoken=1", "token"), "");
  EXPECT_EQ(ParameterOf("token", "token"), "");
  EXPECT_EQ(ParameterOf("token=%zz%4", "token"), "%zz%4");
  EXPECT_EQ(ParameterOf("", "token"), "");
}

}  // namespace
}  // namespace tollgate::dashboard
