#include "common/base/seal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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

TEST(SealTest, AKeyFileHasOneKeyOf64HexadecimalDigitsPerLine) {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("seal-keys-" + std::to_string(getpid()))).string();
  const auto read = [&](const std::string& text) {
    std::ofstream(file, std::ios::trunc) << text;
    return ReadSealKeys(file);
  };
  const std::string a(32, '\xaa'), b(32, '\xbb');
  using Keys = std::vector<std::string>;
  EXPECT_EQ(read(std::string(64, 'a')), Keys{a});
  EXPECT_EQ(read(std::string(64, 'b') + "\r\n\n" + std::string(64, 'a') + "\n"), (Keys{b, a}));
  EXPECT_EQ(read(""), Keys{});
  EXPECT_EQ(read(std::string(62, 'a')), Keys{});
  EXPECT_EQ(read(std::string(64, 'a') + "\n" + std::string(64, 'g')), Keys{});
  std::filesystem::remove(file);
  EXPECT_EQ(ReadSealKeys(file), Keys{});
}

}  // namespace
}  // namespace tollgate
