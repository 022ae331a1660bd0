// See ADR 0013, H49.
#include "common/keys/key_filter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "common/base/id.h"
#include "common/keys/key_format.h"

namespace tollgate {
namespace {

std::vector<uint64_t> MakeIds(size_t count) {
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < count; ++i) ids.push_back(KeyIdElement(RandomBase62(kKeyIdLength)));
  return ids;
}

TEST(KeyFilter, ContainsEveryKeyThatWasAdded) {
  const auto filter = KeyFilter::Make(KeyFilter::ShapeFor(20'000, 7));
  const auto ids = MakeIds(20'000);
  for (const uint64_t id : ids) filter->Add(id);
  for (const uint64_t id : ids) ASSERT_TRUE(filter->MayContain(id));
}

TEST(KeyFilter, LetsFewOtherKeysPass) {
  const auto filter = KeyFilter::Make(KeyFilter::ShapeFor(20'000, 7));
  for (const uint64_t id : MakeIds(20'000)) filter->Add(id);
  int passed = 0;
  for (const uint64_t id : MakeIds(200'000)) passed += filter->MayContain(id) ? 1 : 0;
  // 13 on average; the design allows 0.4 %, which is 800.
  EXPECT_LT(passed, 50);
  // Ids that differ in one character, as an attacker would try them.
  const std::string live = RandomBase62(kKeyIdLength);
  filter->Add(KeyIdElement(live));
  int near = 0;
  for (size_t at = 0; at < live.size(); ++at) {
    for (const char c :
         std::string("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
      std::string other = live;
      other[at] = c;
      if (other != live && filter->MayContain(KeyIdElement(other))) ++near;
    }
  }
  EXPECT_LE(near, 2) << "0.05 on average";
}

TEST(KeyFilter, ATagDependsOnTheWholeKeyAndOnTheTagKey) {
  const std::string secret(32, 's');
  const MadeKey key = MakeKey("acme");
  const uint64_t tag = KeyTag(secret, KeyDigest(key.text));
  EXPECT_EQ(tag, KeyTag(secret, KeyDigest(key.text)));
  EXPECT_NE(tag, KeyTag(std::string(32, 't'), KeyDigest(key.text)));
  std::string other = key.text;
  other.back() = other.back() == 'a' ? 'b' : 'a';
  EXPECT_NE(tag, KeyTag(secret, KeyDigest(other)));
  // The first 8 bytes of HMAC-SHA-256; the values are from RFC 4231, test case 2.
  EXPECT_EQ(KeyTag("Jefe", "what do ya want for nothing?"), 0x5bdcc146bf60754eU);
}

TEST(KeyFilter, OtherSeedsLetOtherKeysPass) {
  // Overfilled, so that many ids pass.
  auto shape = KeyFilter::ShapeFor(1'000, 1);
  const auto one = KeyFilter::Make(shape);
  shape.seed = 2;
  const auto two = KeyFilter::Make(shape);
  for (const uint64_t id : MakeIds(4'000)) {
    one->Add(id);
    two->Add(id);
  }
  int passed_one = 0;
  int passed_both = 0;
  for (const uint64_t id : MakeIds(20'000)) {
    if (!one->MayContain(id)) continue;
    ++passed_one;
    passed_both += two->MayContain(id) ? 1 : 0;
  }
  ASSERT_GT(passed_one, 1'000);
  EXPECT_LT(passed_both, passed_one * 3 / 4);
}

TEST(KeyFilter, IsCopiedPieceByPiece) {
  const auto filter = KeyFilter::Make(KeyFilter::ShapeFor(1'000, 7));
  const auto ids = MakeIds(1'000);
  for (const uint64_t id : ids) filter->Add(id);
  const auto copy = KeyFilter::Make(filter->shape());
  for (size_t offset = 0; offset < filter->shape().bytes; offset += 104) {
    ASSERT_TRUE(copy->Merge(offset, filter->Read(offset, 104)));
  }
  for (const uint64_t id : ids) ASSERT_TRUE(copy->MayContain(id));
  EXPECT_EQ(copy->Read(0, 1 << 20), filter->Read(0, 1 << 20));
}

TEST(KeyFilter, PiecesThatDoNotFitAreRefused) {
  const auto filter = KeyFilter::Make({.seed = 1, .bytes = 64, .hashes = 3});
  EXPECT_FALSE(filter->Merge(4, std::string(8, 'x')));
  EXPECT_FALSE(filter->Merge(0, std::string(7, 'x')));
  EXPECT_FALSE(filter->Merge(64, std::string(8, 'x')));
  EXPECT_FALSE(filter->Merge(8, std::string(64, 'x')));
  EXPECT_FALSE(filter->Merge(SIZE_MAX - 7, std::string(8, 'x')));
  EXPECT_EQ(filter->Read(0, 64), std::string(64, '\0'));
  EXPECT_EQ(filter->Read(1'000, 64), "");
}

TEST(KeyFilter, ShapesOutOfBoundsAreRefused) {
  EXPECT_EQ(KeyFilter::Make({.bytes = 0}), nullptr);
  EXPECT_EQ(KeyFilter::Make({.bytes = 12}), nullptr);
  EXPECT_EQ(KeyFilter::Make({.bytes = KeyFilter::kMaxBytes + 8}), nullptr);
  EXPECT_EQ(KeyFilter::Make({.bytes = 64, .hashes = 0}), nullptr);
  EXPECT_EQ(KeyFilter::Make({.bytes = 64, .hashes = 1'000'000}), nullptr);
  EXPECT_EQ(KeyFilter::ShapeFor(size_t{1} << 40, 1).bytes, KeyFilter::kMaxBytes);
}

TEST(KeyFilter, KeysMayBeAddedWhileOthersLook) {
  const auto filter = KeyFilter::Make(KeyFilter::ShapeFor(20'000, 7));
  const auto ids = MakeIds(20'000);
  std::thread adder([&] {
    for (const uint64_t id : ids) filter->Add(id);
  });
  int seen = 0;
  for (const uint64_t id : ids) seen += filter->MayContain(id) ? 1 : 0;
  adder.join();
  for (const uint64_t id : ids) ASSERT_TRUE(filter->MayContain(id));
  EXPECT_LE(seen, 20'000);
}

}  // namespace
}  // namespace tollgate
