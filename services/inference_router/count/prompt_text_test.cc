#include "services/inference_router/count/prompt_text.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

std::string Words(int count) {
  std::string words = "\"w";
  for (int i = 1; i < count; ++i) words += " w";
  return words + "\"";
}

int64_t OfChat(const std::string& messages) {
  return LeastTokens(inference::v1::REQUEST_KIND_CHAT, "\"messages\":" + messages);
}

TEST(TextOnly, LeavesOutWhatIsNoText) {
  EXPECT_EQ(
      TextOnly(
          R"("x": 1.50,"messages":[{"role":"system","content":"s"},{"role":"user","a\u0062":[1],)"
          R"("content":[{"type":"text","text":"a\u0000 "},{"type":"image_url","image_url":{}},)"
          R"({"text":"no type"},{"type":"text","text":"b"}]}],"tools":[{}])"),
      R"("x": 1.50,"messages":[{"role":"system","content":"s"},{"role":"user","a\u0062":[1],)"
      R"("content":[{"type":"text","text":"a\u0000 "},{"type":"text","text":"b"}]}],"tools":[{}])");
  EXPECT_EQ(TextOnly(R"("messages":[{"content":[{"type":"file"}]}])"),
            R"("messages":[{"content":""}])");
  EXPECT_EQ(TextOnly(R"("prompt":"x")"), std::nullopt);
  EXPECT_EQ(TextOnly(R"("messages":)"), std::nullopt);
}

// Decision 44: never more than a prompt can have.
TEST(LeastTokens, IsATokenForEightWordsOfTheUsersLastMessage) {
  EXPECT_EQ(OfChat(R"([{"role":"user","content":)" + Words(80) + "}]"), 10);
  EXPECT_EQ(OfChat(R"([{"role":"user","content":)" + Words(79) + "}]"), 9);
  EXPECT_EQ(OfChat(R"([{"role":"user","content":[{"type":"text","text":)" + Words(8) +
                   R"(},{"type":"image_url","text":)" + Words(80) + "}]}]"),
            1);
  // Templates may omit all of these.
  EXPECT_EQ(OfChat(R"([{"role":"system","content":)" + Words(80) +
                   R"(},{"role":"user","content":)" + Words(80) + R"(},{"role":"user","content":)" +
                   Words(8) + R"(},{"role":"assistant","content":)" + Words(80) + "}]"),
            1);
  EXPECT_EQ(OfChat(R"([{"role":"user","content":"one\ntwo\tthree\r\n4 5 6 7 eight"}])"), 1);
}

TEST(LeastTokens, CountsNothingThatTokenizersMayLeaveOut) {
  for (const char* content :
       {R"("        ")", R"("\u0301 \u0301 \u0301 \u0301 \u0301 \u0301 \u0301 \u0301")",
        R"("................................")", "null", "5", R"("onelongword")"}) {
    EXPECT_EQ(OfChat(R"([{"role":"user","content":)" + std::string(content) + "}]"), 0) << content;
  }
  for (const char* messages : {"[]", "{}", "5", "[5]", "[[]]", ""}) EXPECT_EQ(OfChat(messages), 0);
}

TEST(LeastTokens, IsThatOfTheLongestPrompt) {
  const auto completion = inference::v1::REQUEST_KIND_COMPLETION;
  const auto embedding = inference::v1::REQUEST_KIND_EMBEDDING;
  EXPECT_EQ(LeastTokens(completion, "\"prompt\":" + Words(80)), 10);
  EXPECT_EQ(LeastTokens(completion, "\"prompt\":[" + Words(8) + "," + Words(80) + "]"), 10);
  EXPECT_EQ(LeastTokens(embedding, "\"input\":[" + Words(80) + ",[1,2,3]]"), 10);
  EXPECT_EQ(LeastTokens(embedding, "\"prompt\":" + Words(80)), 0);
}

}  // namespace
}  // namespace tollgate::inference_router
