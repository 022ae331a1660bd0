#include "common/base/memo.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

TEST(Memo, MakesAValueOncePerText) {
  Memo<size_t> memo;
  int made = 0;
  const auto length = [&made](std::string_view text) {
    ++made;
    return text.size();
  };
  EXPECT_EQ(memo.Get("", length), 0u);
  EXPECT_EQ(memo.Get("team", length), 4u);
  EXPECT_EQ(memo.Get("team", length), 4u);
  EXPECT_EQ(memo.Get("", length), 0u);
  EXPECT_EQ(made, 2);
}

TEST(Memo, GivesEachTextItsOwnValueWhenTheyShareAPlace) {
  Memo<std::string, 1> memo;
  const auto same = [](std::string_view text) { return std::string(text); };
  for (int round = 0; round < 2; ++round) {
    for (const char* text : {"a", "b", "", "a"}) EXPECT_EQ(memo.Get(text, same), text);
  }
}

}  // namespace
}  // namespace tollgate
