#include "common/base/public_address.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

TEST(PublicAddress, SpecialAddressesAreNotPublic) {
  for (const char* text : {"0.0.0.0",
                           "10.1.2.3",
                           "100.64.0.1",
                           "127.0.0.1",
                           "127.9.9.9",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.51.100.1",
                           "203.0.113.1",
                           "224.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "fe80::1",
                           "fc00::1",
                           "fd12::1",
                           "::ffff:127.0.0.1",
                           "ff02::1",
                           "64:ff9b::a00:1",
                           "2001::1",
                           "2001:db8::1",
                           "2002:7f00:1::",
                           "3fff::1"}) {
    EXPECT_FALSE(IsPublicAddress(*ParseIpAddress(text))) << text;
  }
  for (const char* text :
       {"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1",
        "192.167.1.1", "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"}) {
    EXPECT_TRUE(IsPublicAddress(*ParseIpAddress(text))) << text;
  }
}

TEST(PublicAddress, APublicHostIsAPublicAddressOrANameOutsidePrivateDomains) {
  for (const char* host :
       {"example.com", "a.b.example", "8.8.8.8", "[2606:4700::1]", "example.com.",
        "internal.example.com", "notlocal.example", "mylan.io"}) {
    EXPECT_TRUE(IsPublicHost(host)) << host;
  }
  for (const char* host :
       {"", "localhost", "localhost.", "a.localhost", "printer.local", "metadata.google.internal",
        "router.lan", "nas.home.arpa", "grafana.monitoring.svc", "grafana", "10.0.0.1",
        "127.0.0.1.", "169.254.169.254", "[::1]", "[fd00::1]", "[x]", "[]"}) {
    EXPECT_FALSE(IsPublicHost(host)) << host;
  }
}

}  // namespace
}  // namespace tollgate
