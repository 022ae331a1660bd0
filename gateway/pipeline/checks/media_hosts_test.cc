// Decision 45, H67.
#include "gateway/pipeline/checks/media_hosts.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

TEST(MediaHosts, WithoutRulesPublicHostsAreAllowed) {
  for (const std::vector<std::string>& rules : {std::vector<std::string>{}, {"*", "10.0.0.7"}}) {
    EXPECT_TRUE(IsMediaHostAllowed(rules, "anything.example"));
    EXPECT_TRUE(IsMediaHostAllowed(rules, "8.8.8.8"));
    for (const char* inside : {"169.254.169.254", "127.0.0.1", "10.0.0.1", "[fd00::1]", "localhost",
                               "intranet", "metadata.google.internal"}) {
      EXPECT_FALSE(IsMediaHostAllowed(rules, inside)) << inside;
    }
  }
  EXPECT_TRUE(IsMediaHostAllowed({"*", "10.0.0.7"}, "10.0.0.7"));
}

TEST(MediaHosts, ARuleIsAHostOrEveryNameBelowOne) {
  const std::vector<std::string> rules = {"images.example.com", "*.cdn.example", "[2001:db8::1]",
                                          "192.0.2.7"};
  for (const char* allowed :
       {"images.example.com", "a.cdn.example", "a.b.cdn.example", "[2001:db8::1]", "192.0.2.7"}) {
    EXPECT_TRUE(IsMediaHostAllowed(rules, allowed)) << allowed;
  }
  for (const char* refused :
       {"example.com", "a.images.example.com", "cdn.example", ".cdn.example", "evilcdn.example",
        "images.example.com.evil.net", "[2001:db8::2]", "192.0.2.70", "169.254.169.254", ""}) {
    EXPECT_FALSE(IsMediaHostAllowed(rules, refused)) << refused;
  }
}

TEST(MediaHosts, RulesAreReadInLowerCase) {
  EXPECT_EQ(ReadMediaHostRule("*.CDN.Example"), "*.cdn.example");
  EXPECT_EQ(ReadMediaHostRule("[2001:DB8::1]"), "[2001:db8::1]");
  EXPECT_EQ(ReadMediaHostRule("*"), "*");
  for (const char* bad : {"", "**", "*.", "https://example.com", "example.com:443", "a/b", "a b",
                          "*.*.example", "a.*", ".example", "example.", "[x]", "user@host"}) {
    EXPECT_FALSE(ReadMediaHostRule(bad)) << bad;
  }
}

}  // namespace
}  // namespace tollgate::gateway
