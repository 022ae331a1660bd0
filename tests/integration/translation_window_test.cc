// Prompts above the window of the model. See decision 44.
#include "tests/integration/translation_fixture.h"

namespace tollgate::test {
namespace {

// "sim/small" has a window of 1000 tokens, and the engine takes any prompt.
TEST_P(TranslationTest, APromptAboveTheWindowIsRefused) {  // decision 44
  const struct {
    const char* path;
    std::string before, after, param;
  } kCases[] = {
      {kChat, R"("messages":[{"role":"user","content":)", "}]", "messages"},
      {kResponses, R"("input":)", "", "input"},
      {kCompletions, R"("prompt":)", "", "prompt"},
      {kCompletions, R"("prompt":["short",)", "]", "prompt"},
      {kEmbeddings, R"("input":)", "", "input"},
      {kEmbeddings, R"("input":["short",)", R"(,"other"])", "input"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.path + c.before);
    const int64_t before = Generated();
    const HttpResponse answer = Post(c.path, c.before + Words(1001) + c.after, "sim/small");
    EXPECT_EQ(answer.status, 400) << answer.body.substr(0, 500);
    const Json error = answer.json()["error"];
    EXPECT_EQ(error["code"].str(), "context_length_exceeded") << answer.body.substr(0, 500);
    EXPECT_EQ(error["type"].str(), "invalid_request_error");
    EXPECT_EQ(error["param"].str(), c.param);
    EXPECT_NE(error["message"].str().find("maximum context length is 1000 tokens"),
              std::string::npos)
        << error["message"].str();
    EXPECT_EQ(Generated(), before) << "no engine has worked on it";
    const HttpResponse fits = Post(c.path, c.before + Words(900) + c.after, "sim/small");
    EXPECT_EQ(fits.status, 200) << fits.body.substr(0, 500);
  }
}

TEST_P(TranslationTest, APromptAboveTheWindowIsRefusedOnMessagesInItsOwnWords) {
  const HttpResponse answer = Post(
      kMessages, R"("max_tokens":9,"messages":[{"role":"user","content":)" + Words(1001) + "}]",
      "sim/small");
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_NE(answer.body.find("prompt is too long: 10"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find("> 1000 maximum"), std::string::npos) << answer.body;
  EXPECT_EQ(Spent(), 0);
}

TEST_P(TranslationTest, APromptThatSurelyFitsIsNotCounted) {
  const int64_t before = Tokenized();
  EXPECT_EQ(Post(kChat, R"("messages":[{"role":"user","content":)" + Words(400) + "}]", "sim/small")
                .status,
            200);
  EXPECT_EQ(
      Post(kEmbeddings, R"("input":[)" + Words(400) + "," + Words(400) + "," + Words(400) + "]",
           "sim/small")
          .status,
      200)
      << "each has a window of its own";
  EXPECT_EQ(Tokenized(), before);
}

TEST_P(TranslationTest, WhereNoEngineCountsTheEngineDecides) {
  const HttpResponse answer =
      Post(kChat, R"("messages":[{"role":"user","content":)" + Words(1001) + "}]", "sim/uncounted");
  EXPECT_EQ(answer.status, 200) << answer.body;
}

}  // namespace
}  // namespace tollgate::test
