#include "common/base/seal.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

const std::string kKey(kSealKeyBytes, 'k');

TEST(SealTest, OnlyTheSameKeyAndContextUnsealUnchangedBytes) {
  const std::string sealed = Seal(kKey, "context", "the text");
  EXPECT_EQ(Unseal(kKey, "context", sealed), "the text");
  EXPECT_EQ(sealed.find("text"), std::string::npos);
  EXPECT_EQ(Unseal(std::string(kSealKeyBytes, 'x'), "context", sealed), std::nullopt);
  EXPECT_EQ(Unseal(kKey, "other", sealed), std::nullopt);
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(Unseal(kKey, "context", changed), std::nullopt) << i;
    EXPECT_EQ(Unseal(kKey, "context", sealed.substr(0, i)), std::nullopt) << i;
  }
}

TEST(SealTest, TheSameTextIsSealedDifferentlyEachTime) {
  EXPECT_NE(Seal(kKey, "", "text"), Seal(kKey, "", "text"));
  EXPECT_EQ(Unseal(kKey, "", Seal(kKey, "", "")), "");
}

}  // namespace
}  // namespace tollgate
