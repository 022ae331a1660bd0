#include "tests/support/sim_text.h"

#include <gtest/gtest.h>

namespace tollgate::test {
namespace {

TEST(SimText, SplitTokensJoinToTheTextAndAgreeWithTheCount) {
  for (const char* text :
       {"", " ", "one", "one two", "  lead and trail \n", "averyveryverylongword x",
        "Grüße 東京東京東京東京 🙂👩‍💻👩‍💻 end"}) {
    std::string joined;
    for (const std::string& token : SplitTokens(text)) joined += token;
    EXPECT_EQ(joined, text);
    EXPECT_EQ(static_cast<int64_t>(SplitTokens(text).size()), CountTokens(text)) << text;
  }
  EXPECT_EQ(CountTokens("averyveryverylongword x"), 3);
}

TEST(SimText, EveryGeneratedTokenCountsAsOne) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::string text;
    for (int64_t i = 0; i < 500; ++i) text += GeneratedToken(seed, i).text;
    EXPECT_EQ(CountTokens(text), 500) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tollgate::test
