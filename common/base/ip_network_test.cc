#include "common/base/ip_network.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

bool Has(const char* network, const char* address) {
  const auto parsed = IpNetwork::Parse(network);
  const auto ip = ParseIpAddress(address);
  return parsed && ip && parsed->Contains(*ip);
}

TEST(IpNetwork, AnAddressIsANetworkOfOne) {
  EXPECT_TRUE(Has("192.0.2.7", "192.0.2.7"));
  EXPECT_FALSE(Has("192.0.2.7", "192.0.2.8"));
  EXPECT_TRUE(Has("2001:db8::1", "2001:db8:0::1"));
}

TEST(IpNetwork, PrefixesEndWithinAByte) {
  EXPECT_TRUE(Has("10.16.0.0/12", "10.31.255.255"));
  EXPECT_FALSE(Has("10.16.0.0/12", "10.32.0.0"));
  EXPECT_TRUE(Has("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(Has("2001:db8::/33", "2001:db8:8000::1"));
  EXPECT_TRUE(Has("0.0.0.0/0", "203.0.113.9"));
  EXPECT_FALSE(Has("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(Has("::/0", "203.0.113.9"));
}

TEST(IpNetwork, MappedAddressesAreIpv4) {
  EXPECT_TRUE(Has("192.0.2.0/24", "::ffff:192.0.2.9"));
  EXPECT_TRUE(Has("::ffff:192.0.2.0/120", "192.0.2.9"));
}

TEST(IpNetwork, RefusesWhatIsNeither) {
  for (const char* bad : {"", "10.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "::1/129",
                          "::1/8x", "host", "10.0.0.0/8 ", "1.2.3.4/08/1"}) {
    EXPECT_FALSE(IpNetwork::Parse(bad)) << bad;
  }
}

}  // namespace
}  // namespace tollgate
