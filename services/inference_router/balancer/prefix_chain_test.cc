#include "services/inference_router/balancer/prefix_chain.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tollgate::inference_router {
namespace {

std::string Text(size_t bytes, unsigned seed = 1) {
  std::string text;
  for (uint64_t word = seed; text.size() < bytes;) {
    word = word * 6364136223846793005 + 1442695040888963407;
    text += static_cast<char>('a' + (word >> 40) % 26);
  }
  return text;
}

size_t Common(const PrefixChain& a, const PrefixChain& b) {
  size_t common = 0;
  while (common < a.points().size() && common < b.points().size() &&
         a.points()[common].hash == b.points()[common].hash) {
    ++common;
  }
  return common;
}

TEST(PrefixChain, ALongerPromptHasThePointsOfItsBeginning) {
  const std::string text = Text(300'000);
  const PrefixChain whole(7, text);
  for (const size_t bytes : {512u, 5'000u, 8'192u, 8'193u, 100'000u}) {
    const PrefixChain part(7, std::string_view(text).substr(0, bytes));
    ASSERT_FALSE(part.points().empty());
    EXPECT_EQ(Common(whole, part), part.points().size()) << bytes;
    EXPECT_GE(static_cast<size_t>(part.points().back().bytes) * 8 / 7 + 512, bytes)
        << "no more than an eighth of a long beginning is lost";
  }
}

TEST(PrefixChain, WhatFollowsADifferentByteHasNothingInCommon) {
  const std::string text = Text(50'000);
  for (const size_t at : {0u, 511u, 512u, 9'000u, 40'000u}) {
    std::string other = text;
    other[at] = '#';
    const PrefixChain a(7, text), b(7, other);
    for (size_t i = 0; i < a.points().size(); ++i) {
      const bool before = static_cast<size_t>(a.points()[i].bytes) <= at;
      EXPECT_EQ(a.points()[i].hash == b.points()[i].hash, before) << at << " " << i;
    }
  }
}

TEST(PrefixChain, PromptsOfAnotherSeedHaveNothingInCommon) {
  const std::string text = Text(50'000);
  std::set<uint64_t> hashes;
  size_t points = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const PrefixChain chain(seed, text);
    points += chain.points().size();
    for (const auto& point : chain.points()) hashes.insert(point.hash);
  }
  EXPECT_EQ(hashes.size(), points);
}

TEST(PrefixChain, AShortPromptHasNoPointAndAHugeOneABoundedNumber) {
  EXPECT_TRUE(PrefixChain(7, Text(511)).points().empty());
  const PrefixChain huge(7, Text(3 << 20));
  EXPECT_LE(huge.points().size(), PrefixChain::kMostPoints);
  EXPECT_LE(huge.points().back().bytes, static_cast<int64_t>(PrefixChain::kMostBytes));
  EXPECT_GE(huge.points().back().bytes, 900'000);
  EXPECT_EQ(huge.bytes(), 3 << 20);
}

TEST(PrefixChain, APromptBeginsBehindTheMembersBeforeIt) {
  EXPECT_EQ(PromptBytes(R"("seed":1,"messages":[])"), R"("messages":[])");
  EXPECT_EQ(PromptBytes(R"("top_p":1,"prompt":"x")"), R"("prompt":"x")");
  EXPECT_EQ(PromptBytes(R"("messages":[{"content":"\"prompt\":"}])"),
            R"("messages":[{"content":"\"prompt\":"}])");
  const std::string tools = R"("tools":[)" + std::string(300, ' ') + R"(],"messages":[])";
  EXPECT_EQ(PromptBytes(tools), tools) << "templates write tools before messages";
  EXPECT_EQ(PromptBytes(""), "");
}

TEST(HashBytes, DiffersWithEachByteTheLengthAndTheSeed) {
  std::set<uint64_t> hashes;
  int made = 0;
  for (size_t size = 0; size < 200; ++size, ++made)
    hashes.insert(HashBytes(1, std::string(size, '\0')));
  for (size_t at = 0; at < 200; ++at, ++made) {
    std::string text(200, 'x');
    text[at] = 'y';
    hashes.insert(HashBytes(1, text));
  }
  for (uint64_t seed = 2; seed < 100; ++seed, ++made) hashes.insert(HashBytes(seed, "x"));
  EXPECT_EQ(hashes.size(), static_cast<size_t>(made));
}

}  // namespace
}  // namespace tollgate::inference_router
