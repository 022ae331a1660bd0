#include "common/base/id.h"

#include <gtest/gtest.h>

#include <set>

namespace tollgate {
namespace {

TEST(IdTest, ContainsItsTimeAndSortsByIt) {
  Id early = Id::Make(1'700'000'000'000, ~0ull, ~0ull);
  Id late = Id::Make(1'700'000'000'001, 0, 0);
  EXPECT_EQ(early.unix_ms(), 1'700'000'000'000);
  EXPECT_LT(early, late);
  EXPECT_LT(early.ToBytes(), late.ToBytes());
}

TEST(IdTest, RoundTripsThroughBytesAndHex) {
  Id id = Id::New();
  EXPECT_EQ(Id::FromBytes(id.ToBytes()), id);
  EXPECT_EQ(Id::FromHex(id.ToHex()), id);
  EXPECT_FALSE(Id::FromBytes("short").has_value());
  EXPECT_FALSE(Id::FromHex(std::string(32, 'g')).has_value());
  EXPECT_TRUE(Id().empty());
}

// Decision 65: an answer's id is a prefix and the request's id in base62.
TEST(IdTest, RoundTripsThroughBase62) {
  const Id largest = *Id::FromBytes(std::string(16, '\xff'));
  for (const Id& id : {Id(), Id::New(), Id::Make(1, 0, 0), largest}) {
    EXPECT_EQ(id.ToBase62().size(), 22U);
    EXPECT_EQ(Id::FromBase62(id.ToBase62()), id);
  }
  EXPECT_EQ(Id().ToBase62(), std::string(22, '0'));
  EXPECT_EQ(Id::FromBase62(std::string(22, 'z')), std::nullopt) << "above 128 bits";
  std::string next = largest.ToBase62();
  ++next.back();
  EXPECT_EQ(Id::FromBase62(next), std::nullopt);
  EXPECT_EQ(Id::FromBase62(std::string(21, '0')), std::nullopt);
  EXPECT_EQ(Id::FromBase62(std::string(21, '0') + "-"), std::nullopt);
}

TEST(IdTest, NewIdsDiffer) {
  std::set<Id> ids;
  for (int i = 0; i < 10'000; ++i) ids.insert(Id::New());
  EXPECT_EQ(ids.size(), 10'000u);
}

TEST(RandomBase62, HasTheRequestedLengthAndAlphabet) {
  std::string text = RandomBase62(43);
  EXPECT_EQ(text.size(), 43u);
  for (char c : text) EXPECT_TRUE(isalnum(static_cast<unsigned char>(c)));
}

}  // namespace
}  // namespace tollgate
