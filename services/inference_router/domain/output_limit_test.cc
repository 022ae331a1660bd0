#include "services/inference_router/domain/output_limit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tollgate::inference_router {
namespace {

using inference::v1::Delta;
using inference::v1::FINISH_REASON_LENGTH;
using inference::v1::FINISH_REASON_STOP;
using inference::v1::FINISH_REASON_UNSPECIFIED;

Delta Piece(const std::string& escaped, int choice = 0) {
  Delta delta;
  delta.set_choice(choice);
  delta.set_content_json(escaped);
  return delta;
}

Delta Applied(OutputLimit& limit, int64_t tokens_before, Delta delta) {
  limit.Apply(tokens_before, delta);
  return delta;
}

// The text that is left of an answer of this many tokens.
std::string Shortened(int64_t limit, int64_t tokens, const std::string& escaped) {
  std::vector<inference::v1::Event> answer(1);
  *answer[0].mutable_delta() = Piece(escaped);
  OutputLimit(limit, 1).Shorten(tokens, answer);
  return answer[0].delta().content_json();
}

TEST(OutputLimit, AChoiceEndsByLengthAtItsLimit) {
  OutputLimit limit(2, 1);
  EXPECT_EQ(Applied(limit, 0, Piece("a")).content_json(), "a");
  EXPECT_EQ(Applied(limit, 1, Piece("b")).content_json(), "b");
  EXPECT_FALSE(limit.exceeded());
  const Delta end = Applied(limit, 2, Piece("c"));
  EXPECT_EQ(end.content_json(), "");
  EXPECT_EQ(end.finish_reason(), FINISH_REASON_LENGTH);
  EXPECT_TRUE(limit.over());
  EXPECT_EQ(Applied(limit, 2, Piece("d")).ByteSizeLong(), 0u);
}

TEST(OutputLimit, AnEngineThatEndsItselfKeepsItsReason) {
  OutputLimit limit(2, 1);
  Delta end;
  end.set_finish_reason(FINISH_REASON_STOP);
  EXPECT_EQ(Applied(limit, 2, end).finish_reason(), FINISH_REASON_STOP);
  EXPECT_FALSE(limit.over());
  EXPECT_FALSE(limit.exceeded());
}

TEST(OutputLimit, EachChoiceHasItsOwn) {
  OutputLimit limit(2, 2);
  EXPECT_EQ(Applied(limit, 2, Piece("a", 1)).finish_reason(), FINISH_REASON_LENGTH);
  EXPECT_TRUE(limit.exceeded());
  EXPECT_FALSE(limit.over());
  EXPECT_EQ(Applied(limit, 1, Piece("b", 0)).content_json(), "b");
  EXPECT_EQ(Applied(limit, 2, Piece("c", 0)).finish_reason(), FINISH_REASON_LENGTH);
  EXPECT_TRUE(limit.over());
}

TEST(OutputLimit, AnUnknownLimitEndsNothing) {
  OutputLimit limit(0, 1);
  EXPECT_EQ(Applied(limit, 1'000'000, Piece("a")).content_json(), "a");
  EXPECT_EQ(Shortened(0, 1'000'000, "text"), "text");
}

TEST(OutputLimit, AWholeTextIsCutBetweenCharacters) {
  EXPECT_EQ(Shortened(10, 10, "0123456789"), "0123456789");
  EXPECT_EQ(Shortened(5, 10, "0123456789"), "01234");
  EXPECT_EQ(Shortened(1, 2, "\xC3\xBC\xC3\xBC\xC3\xBC"), "\xC3\xBC");
  EXPECT_EQ(Shortened(1, 2, R"(\n\"\n\")"), R"(\n\")");
  EXPECT_EQ(Shortened(3, 4, R"(a\ud83d\ude00bcd)"), R"(a\ud83d\ude00b)");
  EXPECT_EQ(Shortened(3, 8, R"(a\ud83d\ude00bcd)"), "a");
}

TEST(OutputLimit, AWholeAnswerKeepsItsFirstPart) {
  std::vector<inference::v1::Event> answer(1);
  Delta& delta = *answer[0].mutable_delta();
  delta.set_reasoning_json("0123456789");
  delta.set_content_json("0123456789");
  delta.set_logprobs_json("{}");
  delta.set_finish_reason(FINISH_REASON_STOP);
  auto& first = *delta.add_tool_calls();
  first.set_name_json("f");
  first.set_arguments_json("0123456789");
  *delta.add_tool_calls() = first;
  OutputLimit limit(26, 1);
  limit.Shorten(42, answer);
  EXPECT_EQ(delta.reasoning_json().size() + delta.content_json().size(), 20u);
  ASSERT_EQ(delta.tool_calls_size(), 1);
  EXPECT_EQ(delta.tool_calls(0).arguments_json(), "01234");
  EXPECT_EQ(delta.finish_reason(), FINISH_REASON_LENGTH);
  EXPECT_EQ(delta.logprobs_json(), "");
  EXPECT_TRUE(limit.exceeded());
}

}  // namespace
}  // namespace tollgate::inference_router
