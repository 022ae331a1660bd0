#include "common/base/crypto.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

TEST(CryptoTest, KnownAnswers) {
  EXPECT_EQ(HexEncode(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // RFC 4231, test case 2.
  EXPECT_EQ(HexEncode(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Crc32("123456789"), 0xCBF43926u);
}

TEST(CryptoTest, Crc32CanBeContinued) {
  EXPECT_EQ(Crc32("6789", Crc32("12345")), Crc32("123456789"));
}

TEST(CryptoTest, HexRoundTrip) {
  std::string bytes("\x00\x7f\xff", 3);
  EXPECT_EQ(HexDecode(HexEncode(bytes)), bytes);
  EXPECT_FALSE(HexDecode("abc").has_value());
  EXPECT_FALSE(HexDecode("zz").has_value());
}

TEST(CryptoTest, ConstantTimeEqualsComparesLengthAndContent) {
  EXPECT_TRUE(ConstantTimeEquals("same", "same"));
  EXPECT_FALSE(ConstantTimeEquals("same", "sama"));
  EXPECT_FALSE(ConstantTimeEquals("same", "sam"));
}

}  // namespace
}  // namespace tollgate
