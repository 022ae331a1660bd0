#include "services/dashboard/http/same_origin.h"

#include <gtest/gtest.h>

namespace tollgate::dashboard {
namespace {

bool Same(http::Headers headers, std::string_view public_url = "") {
  headers.emplace_back("host", "Dash.example:8081");
  return IsSameOrigin({.method = "POST", .headers = std::move(headers)}, public_url);
}

TEST(SameOriginTest, OneOfTheTwoHeadersMustSayItAndNoneMayContradict) {
  EXPECT_FALSE(Same({}));
  EXPECT_TRUE(Same({{"sec-fetch-site", "same-origin"}}));
  EXPECT_TRUE(Same({{"origin", "http://dash.example:8081"}}));
  EXPECT_TRUE(Same({{"origin", "https://dash.example:8081"}}));
  EXPECT_TRUE(Same({{"sec-fetch-site", "same-origin"}, {"origin", "http://dash.example:8081"}}));
  for (const char* site : {"cross-site", "same-site", "none", "Same-Origin"}) {
    EXPECT_FALSE(Same({{"sec-fetch-site", site}})) << site;
    EXPECT_FALSE(Same({{"sec-fetch-site", site}, {"origin", "http://dash.example:8081"}})) << site;
  }
  for (const char* origin : {"null", "http://dash.example", "http://evil.example:8081",
                             "http://dash.example:8081.evil.example", "dash.example:8081"}) {
    EXPECT_FALSE(Same({{"origin", origin}})) << origin;
    EXPECT_FALSE(Same({{"sec-fetch-site", "same-origin"}, {"origin", origin}})) << origin;
  }
}

TEST(SameOriginTest, TheConfiguredAddressCountsAndNotTheHostHeader) {
  constexpr std::string_view kUrl = "https://Dashboard.example/app/";
  EXPECT_TRUE(Same({{"origin", "https://dashboard.example"}}, kUrl));
  EXPECT_TRUE(Same({{"origin", "https://dashboard.example"}}, "https://dashboard.example:443"));
  EXPECT_FALSE(Same({{"origin", "http://dashboard.example"}}, kUrl));
  EXPECT_FALSE(Same({{"origin", "http://dash.example:8081"}}, kUrl));
}

}  // namespace
}  // namespace tollgate::dashboard
