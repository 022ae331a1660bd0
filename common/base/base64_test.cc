// RFC 4648, sections 4 and 10.
#include "common/base/base64.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

TEST(Base64, Rfc4648TestVectors) {
  const std::pair<const char*, const char*> kVectors[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [bytes, text] : kVectors) {
    EXPECT_EQ(Base64Encode(bytes), text);
    EXPECT_EQ(Base64Decode(text), bytes);
  }
}

TEST(Base64, EveryByteInEveryPositionRoundTrips) {
  std::string bytes;
  for (int i = 0; i < 256 * 3; ++i) bytes.push_back(static_cast<char>(i * 7 + i / 256));
  for (size_t size = bytes.size() - 3; size <= bytes.size(); ++size) {
    EXPECT_EQ(Base64Decode(Base64Encode(bytes.substr(0, size))), bytes.substr(0, size));
  }
  EXPECT_EQ(Base64Encode("\xFB\xFF"), "+/8=");
}

TEST(Base64, RejectsMalformedText) {
  for (const char* bad : {"Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zg==Zg==", "Zm9v\n", "Zm 9",
                          "-_8=", "Zh==", "Zm9=", "Zg=A", "Z=9v", "=m9v", "    Zm9v",
                          "Zm9v\n\n\n\n", "Zm9v----", "Z\xC3\xA4=="}) {
    EXPECT_FALSE(Base64Decode(bad)) << bad;
  }
}

}  // namespace
}  // namespace tollgate
