#include "common/keys/key_format.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <vector>

#include "common/base/crypto.h"

namespace tollgate {
namespace {

constexpr std::string_view kBrand = "tollgate";

TEST(KeyFormat, AMadeKeyParsesAndShowsItsPublicId) {
  const MadeKey key = MakeKey(kBrand);
  EXPECT_TRUE(key.text.starts_with("sk-tollgate-"));
  EXPECT_EQ(key.text.size(), 12 + kKeyIdLength + kKeySecretLength + kKeyChecksumLength);
  EXPECT_TRUE(IsKeyId(key.key_id));
  const auto parsed = ParseKey(key.text, kBrand);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->key_id, key.key_id);
  EXPECT_FALSE(parsed->legacy);
  // The secret ends with the four characters before the checksum.
  EXPECT_EQ(key.text.substr(key.text.size() - 4), key.last_four);
}

// The pattern that secret scanners search for (docs/design/keys.md 5).
TEST(KeyFormat, KeysHaveThePublishedPattern) {
  const std::regex pattern("sk-tollgate-[0-9A-Za-z]{61}");
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(std::regex_match(MakeKey(kBrand).text, pattern));
}

TEST(KeyFormat, NewKeysAreDistinct) {
  std::set<std::string> ids;
  std::set<std::string> texts;
  for (int i = 0; i < 1000; ++i) {
    const MadeKey key = MakeKey(kBrand);
    ids.insert(key.key_id);
    texts.insert(key.text);
  }
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(texts.size(), 1000u);
}

// H44: a changed character anywhere is detected without a lookup.
TEST(KeyFormat, EveryChangedCharacterIsRefused) {
  const std::string key = MakeKey(kBrand).text;
  for (size_t i = 0; i < key.size(); ++i) {
    for (const char c : std::string_view("0aZ-_ \n\x7f\xc3")) {
      if (key[i] == c) continue;
      std::string changed = key;
      changed[i] = c;
      EXPECT_FALSE(ParseKey(changed, kBrand)) << i;
    }
    std::string nul = key;
    nul[i] = '\0';
    EXPECT_FALSE(ParseKey(nul, kBrand)) << i;
  }
}

TEST(KeyFormat, EveryTruncationAndExtensionIsRefused) {
  const std::string key = MakeKey(kBrand).text;
  for (size_t i = 0; i < key.size(); ++i) {
    EXPECT_FALSE(ParseKey(key.substr(0, i), kBrand)) << i;
    EXPECT_FALSE(ParseKey(key.substr(i + 1), kBrand)) << i;
  }
  EXPECT_FALSE(ParseKey(key + "0", kBrand));
  EXPECT_FALSE(ParseKey(" " + key, kBrand));
  EXPECT_FALSE(ParseKey(key + " ", kBrand));
  EXPECT_FALSE(ParseKey(key + key, kBrand));
  EXPECT_FALSE(ParseKey(std::string(10'240, 'a'), kBrand));
  EXPECT_FALSE(ParseKey("sk-tollgate-" + std::string(10'240, 'a'), kBrand));
}

TEST(KeyFormat, AKeyOfAnotherBrandIsRefused) {
  const std::string key = MakeKey("other").text;
  EXPECT_TRUE(ParseKey(key, "other"));
  EXPECT_FALSE(ParseKey(key, kBrand));
  // The same tail under another prefix is refused too: the checksum covers the prefix.
  EXPECT_FALSE(ParseKey("sk-tollgate-" + key.substr(9), kBrand));
}

TEST(KeyFormat, LegacyPrefixesAreAcceptedOnlyWhenConfigured) {
  const std::vector<std::string> prefixes = {"", "tg_live_", "sk-"};
  const std::string key = "tg_live_0123456789abcdef";
  EXPECT_FALSE(ParseKey(key, kBrand));
  const auto parsed = ParseKey(key, kBrand, prefixes);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->legacy);
  EXPECT_TRUE(parsed->key_id.empty());
  EXPECT_FALSE(
      ParseKey("tg_dead_0123456789abcdef", kBrand, prefixes));  // an empty prefix matches nothing
  EXPECT_FALSE(ParseKey("tg_live_0123456789abc\n", kBrand, prefixes));
  EXPECT_FALSE(ParseKey("tg_live_0123", kBrand, prefixes));
  EXPECT_FALSE(ParseKey("tg_live_" + std::string(10'240, 'a'), kBrand, prefixes));
}

TEST(KeyFormat, AMalformedKeyOfTheBrandIsNotALegacyKey) {
  const std::vector<std::string> prefixes = {"sk-"};
  std::string key = MakeKey(kBrand).text;
  EXPECT_FALSE(ParseKey(key, kBrand, prefixes)->legacy);
  key.back() = key.back() == 'a' ? 'b' : 'a';
  EXPECT_FALSE(ParseKey(key, kBrand, prefixes));
}

TEST(KeyFormat, TheDigestIsSha256OfTheText) {
  EXPECT_EQ(HexEncode(KeyDigest("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(KeyFormat, IdsAndBrandsAreChecked) {
  EXPECT_TRUE(IsKeyId("0123456789Az"));
  EXPECT_FALSE(IsKeyId("0123456789A"));
  EXPECT_FALSE(IsKeyId("0123456789A-"));
  EXPECT_TRUE(IsBrand("my-brand2"));
  EXPECT_FALSE(IsBrand(""));
  EXPECT_FALSE(IsBrand("-a"));
  EXPECT_FALSE(IsBrand("a-"));
  EXPECT_FALSE(IsBrand("A"));
  EXPECT_FALSE(IsBrand(std::string(33, 'a')));
}

TEST(PublicIdOf, IsTheIdOfAKeyOfTheBrandAndEmptyForOthers) {
  const MadeKey key = MakeKey("acme");
  EXPECT_EQ(PublicIdOf(key.text, "acme"), key.key_id);
  EXPECT_EQ(PublicIdOf(key.text, "acm"), "");
  EXPECT_EQ(PublicIdOf(key.text, "other"), "");
  EXPECT_EQ(PublicIdOf("old-0123456789012345678901234567890123456789", "acme"), "");
  EXPECT_EQ(PublicIdOf("", "acme"), "");
}

}  // namespace
}  // namespace tollgate
