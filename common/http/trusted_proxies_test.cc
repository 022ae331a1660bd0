#include "common/http/trusted_proxies.h"

#include <gtest/gtest.h>

namespace tollgate::http {
namespace {

TrustedProxies Of(const std::vector<std::string>& list) {
  auto parsed = TrustedProxies::Parse(list);
  EXPECT_TRUE(parsed.ok());
  return parsed.ok() ? *parsed : TrustedProxies();
}

TEST(TrustedProxies, NoProxyIsTrustedByDefaultH48) {
  EXPECT_EQ(TrustedProxies().ClientAddress("127.0.0.1", {{"x-forwarded-for", "1.2.3.4"}}),
            "127.0.0.1");
}

TEST(TrustedProxies, OnlyListedProxiesAreTrusted) {
  const TrustedProxies proxies = Of({"10.0.0.0/8", "192.0.2.7", "fd00::/8"});
  const Headers headers = {{"x-forwarded-for", "1.2.3.4"}};
  EXPECT_EQ(proxies.ClientAddress("10.200.3.4", headers), "1.2.3.4");
  EXPECT_EQ(proxies.ClientAddress("192.0.2.7", headers), "1.2.3.4");
  EXPECT_EQ(proxies.ClientAddress("fd12::1", headers), "1.2.3.4");
  EXPECT_EQ(proxies.ClientAddress("::ffff:10.1.1.1", headers), "1.2.3.4");
  for (const char* other : {"11.0.0.1", "192.0.2.8", "fe00::1", "9.255.255.255"}) {
    EXPECT_EQ(proxies.ClientAddress(other, headers), other);
  }
}

TEST(TrustedProxies, UsesTheLastAddressThatIsNotAProxy) {
  const TrustedProxies proxies = Of({"10.0.0.0/8"});
  const auto caller = [&](const Headers& headers) {
    return proxies.ClientAddress("10.0.0.1", headers);
  };
  EXPECT_EQ(caller({{"x-forwarded-for", "6.6.6.6, 1.2.3.4"}}), "1.2.3.4");
  EXPECT_EQ(caller({{"x-forwarded-for", "6.6.6.6, 1.2.3.4 , 10.0.0.2,10.0.0.3"}}), "1.2.3.4");
  EXPECT_EQ(caller({{"x-forwarded-for", "6.6.6.6"}, {"a", "b"}, {"x-forwarded-for", "1.2.3.4"}}),
            "1.2.3.4");
  EXPECT_EQ(caller({{"x-forwarded-for", "1.2.3.4:5678"}}), "1.2.3.4");
  EXPECT_EQ(caller({{"x-forwarded-for", "[2001:db8::1]:5678"}}), "2001:db8::1");
  EXPECT_EQ(caller({{"x-forwarded-for", "2001:db8::1"}}), "2001:db8::1");
}

TEST(TrustedProxies, MalformedAddressesAreIgnored) {
  const TrustedProxies proxies = Of({"10.0.0.0/8"});
  for (const char* value : {"", "unknown", "1.2.3", ",", "1.2.3.4,", "[::1", "_hidden",
                            "1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8.9.0"}) {
    EXPECT_EQ(proxies.ClientAddress("10.0.0.1", {{"x-forwarded-for", value}}), "10.0.0.1") << value;
  }
  EXPECT_EQ(proxies.ClientAddress("10.0.0.1", {{"forwarded", "for=1.2.3.4"}}), "10.0.0.1");
  EXPECT_EQ(proxies.ClientAddress("10.0.0.1", {{"x-forwarded-for", "nonsense, 10.0.0.9"}}),
            "10.0.0.9");
}

TEST(TrustedProxies, NetworksOfEveryLength) {
  EXPECT_TRUE(Of({"0.0.0.0/0"}).Contains("203.0.113.9"));
  EXPECT_FALSE(Of({"0.0.0.0/0"}).Contains("2001:db8::1"));
  EXPECT_TRUE(Of({"::/0"}).Contains("203.0.113.9"));
  EXPECT_TRUE(Of({"10.1.2.0/23"}).Contains("10.1.3.255"));
  EXPECT_FALSE(Of({"10.1.2.0/23"}).Contains("10.1.4.0"));
  EXPECT_TRUE(Of({"2001:db8::/33"}).Contains("2001:db8:7fff::1"));
  EXPECT_FALSE(Of({"2001:db8::/33"}).Contains("2001:db8:8000::1"));
}

TEST(TrustedProxies, InvalidSettingsAreErrors) {
  for (const char* bad : {"", "localhost", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "::/129",
                          "10.0.0.0/8x", "10.0.0"}) {
    auto parsed = TrustedProxies::Parse({"127.0.0.1", bad});
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_NE(parsed.error().internal.find("trusted_proxies"), std::string::npos);
  }
}

}  // namespace
}  // namespace tollgate::http
