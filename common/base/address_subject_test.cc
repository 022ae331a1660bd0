#include "common/base/address_subject.h"

#include <gtest/gtest.h>

#include <unordered_set>

namespace tollgate {
namespace {

AddressSubject Of(std::string_view text) { return AddressSubject::FromText(text); }

TEST(AddressSubject, EachIpv4AddressIsASubject) {
  EXPECT_EQ(Of("10.0.0.1"), Of("10.0.0.1"));
  EXPECT_NE(Of("10.0.0.1"), Of("10.0.0.2"));
  EXPECT_EQ(Of("10.0.0.1"), AddressSubject::FromIpv4({10, 0, 0, 1}));
}

TEST(AddressSubject, Ipv6AddressesOfOneNetworkAreOneSubject) {
  EXPECT_EQ(Of("2001:db8:1:2::1"), Of("2001:db8:1:2:ffff:ffff:ffff:ffff"));
  EXPECT_NE(Of("2001:db8:1:2::1"), Of("2001:db8:1:3::1"));
  EXPECT_EQ(Of("2001:db8:1:2::1"), AddressSubject::FromIpv6({0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 2}));
  EXPECT_EQ(Of("fe80::1%eth0"), Of("fe80::2%eth1"));
}

TEST(AddressSubject, Ipv4WrittenAsIpv6IsIpv4) {
  EXPECT_EQ(Of("::ffff:10.0.0.1"), Of("10.0.0.1"));
  EXPECT_EQ(Of("::ffff:a00:1"), Of("10.0.0.1"));
  EXPECT_EQ(Of("64:ff9b::10.0.0.1"), Of("10.0.0.1"));
  EXPECT_NE(Of("::ffff:10.0.0.2"), Of("10.0.0.1"));
  // The network ::/64 is not IPv4.
  EXPECT_NE(Of("::1"), Of("0.0.0.0"));
}

TEST(AddressSubject, OneSubjectHasOneText) {
  EXPECT_EQ(Of("10.0.0.1").ToText(), "10.0.0.1");
  EXPECT_EQ(Of("::ffff:10.0.0.1").ToText(), "10.0.0.1");
  EXPECT_EQ(Of("2001:DB8:1:2:3::4%eth0").ToText(), "2001:db8:1:2::/64");
  EXPECT_EQ(Of("not an address").ToText(), "other");
}

TEST(AddressSubject, OtherTextIsOneSubject) {
  EXPECT_EQ(Of(""), AddressSubject());
  EXPECT_EQ(Of("unix"), Of("10.0.0.1.2"));
  EXPECT_EQ(Of(std::string(1000, '1')), AddressSubject());
  EXPECT_NE(Of(""), Of("0.0.0.0"));
  EXPECT_NE(Of(""), Of("::"));
}

TEST(AddressSubject, HashesAreSpreadAndDependOnTheSeed) {
  std::unordered_set<uint64_t> buckets;
  std::unordered_set<uint64_t> other_seed;
  for (uint8_t high = 0; high < 16; ++high) {
    for (int low = 0; low < 256; ++low) {
      const auto subject = AddressSubject::FromIpv4({10, 0, high, static_cast<uint8_t>(low)});
      buckets.insert(subject.Hash(1) % 65'536);
      other_seed.insert(subject.Hash(2) % 65'536);
    }
  }
  // 4,096 balls in 65,536 buckets hit 3,969 different ones on average, with a deviation of 11.
  EXPECT_GT(buckets.size(), 3'900u);
  EXPECT_GT(other_seed.size(), 3'900u);
  EXPECT_NE(Of("10.0.0.1").Hash(1), Of("10.0.0.1").Hash(2));
  EXPECT_NE(Of("10.0.0.1").Hash(1), Of("0:0:0:0:a00:1::").Hash(1));
}

}  // namespace
}  // namespace tollgate
