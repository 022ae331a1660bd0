// The checks of engine_faults find what no caller may receive.
#include "tests/engine_faults/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tollgate::test {
namespace {

Question Chat() {
  Question question;
  question.tag = "c1";
  return question;
}

Answer Of(int status, const std::string& bytes) {
  Answer answer;
  answer.status = status;
  answer.type = "application/json";
  answer.bytes = bytes;
  answer.ended = true;
  return answer;
}

Answer Whole(const std::string& text, int tokens) {
  const std::string count = std::to_string(tokens);
  return Of(
      200,
      R"({"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"sim/model",)"
      R"("choices":[{"index":0,"message":{"role":"assistant","content":")" +
          text +
          R"(","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":0,)"
          R"("completion_tokens":)" +
          count + R"(,"total_tokens":)" + count + "}}");
}

Answer Refusal(int status, const std::string& code, const std::string& message) {
  return Of(status, R"({"error":{"message":")" + message +
                        R"(","type":"server_error","param":null,"code":")" + code + "\"}}");
}

// Returns whether one of the findings contains this text.
bool Finds(const Verdict& verdict, const std::string& words) {
  return std::any_of(verdict.wrong.begin(), verdict.wrong.end(), [&](const std::string& wrong) {
    return wrong.find(words) != std::string::npos;
  });
}

TEST(VerdictTest, AWholeAnswerOfOneEngineIsRight) {
  const Verdict verdict = Judge(Chat(), Whole("[e1x7.3.c1.0][e1x7.3.c1.1]", 2));
  EXPECT_TRUE(verdict.wrong.empty()) << verdict.wrong.front();
  EXPECT_EQ(verdict.end, Verdict::End::kWhole);
  EXPECT_EQ(verdict.mark, "e1x7.3");
  EXPECT_EQ(verdict.tokens, 2);
  EXPECT_EQ(verdict.output_told, 2);
}

TEST(VerdictTest, JoinedMissingAndDoubledTextIsFound) {
  EXPECT_TRUE(Finds(Judge(Chat(), Whole("[e1x7.3.c1.0][e2x8.3.c1.1]", 2)), "joins text"));
  EXPECT_TRUE(Finds(Judge(Chat(), Whole("[e1x7.3.c1.0][e1x7.4.c1.1]", 2)), "joins text"))
      << "two attempts at one engine";
  EXPECT_TRUE(Finds(Judge(Chat(), Whole("[e1x7.3.c2.0]", 1)), "text of c2"));
  EXPECT_TRUE(Finds(Judge(Chat(), Whole("[e1x7.3.c1.1]", 1)), "token 1 instead of 0"));
  EXPECT_TRUE(Finds(Judge(Chat(), Whole("[e1x7.3.c1.0][e1x7.3.c1.0]", 2)), "instead of 1"));
  EXPECT_TRUE(Finds(Judge(Chat(), Whole("[e1x7.3.c1.0]x", 1)), "what no engine wrote"));
  EXPECT_TRUE(Finds(Judge(Chat(), Whole("[e1x7.3.c1.0]", 2)), "usage of 2 for 1"));
}

TEST(VerdictTest, AnEnginesOwnTextIsFound) {
  EXPECT_TRUE(Judge(Chat(), Refusal(502, "server_error", "It failed.")).wrong.empty());
  EXPECT_TRUE(Finds(Judge(Chat(), Refusal(502, "server_error", "engine-body e1")), "own"));
  EXPECT_TRUE(Finds(Judge(Chat(), Whole("engine-body", 1)), "own"));
}

TEST(VerdictTest, ErrorsThatAreNotOfTheCatalogAndSilenceAreFound) {
  EXPECT_TRUE(Finds(Judge(Chat(), Refusal(504, "server_error", "m")), "no error of the catalog"));
  EXPECT_TRUE(Finds(Judge(Chat(), Refusal(502, "odd", "m")), "no error of the catalog"));
  EXPECT_TRUE(Finds(Judge(Chat(), Refusal(401, "invalid_api_key", "m")), "no error of the"));
  EXPECT_TRUE(Finds(Judge(Chat(), Answer()), "no answer"));
  Answer cut = Whole("[e1x7.3.c1.0]", 1);
  cut.ended = false;
  EXPECT_TRUE(Finds(Judge(Chat(), cut), "no end"));
  Question streamed = Chat();
  streamed.streamed = true;
  Answer silent = Of(200, ": keep-alive\n\n");
  silent.type = "text/event-stream";
  EXPECT_TRUE(Finds(Judge(streamed, silent), "ends in [DONE] or an error"));
}

// docs/design/wire.md 5.3
TEST(VerdictTest, TheResponsesApiHasCodesOfItsOwn) {
  const auto judged = [](const std::string& code) {
    Question question = Chat();
    question.surface = Surface::kResponses;
    question.streamed = true;
    Answer answer = Of(200,
                       "event: response.failed\ndata: {\"type\":\"response.failed\","
                       "\"sequence_number\":0,\"response\":{\"error\":{\"code\":\"" +
                           code + "\",\"message\":\"m\"}}}\n\n");
    answer.type = "text/event-stream";
    return Judge(question, answer);
  };
  const std::string found = "fails in the stream with";
  EXPECT_FALSE(Finds(judged("rate_limit_exceeded"), found));
  EXPECT_FALSE(Finds(judged("server_error"), found));
  EXPECT_TRUE(Finds(judged("rate_limited"), found)) << "the catalog's error, not the engine's";
}

TEST(VerdictTest, TheVectorOfAnotherInputIsFound) {
  Question question = Chat();
  question.surface = Surface::kEmbeddings;
  EXPECT_TRUE(Finds(Judge(question, Of(200, R"({"data":[{"embedding":[0.5]}]})")), "vector"));
}

}  // namespace
}  // namespace tollgate::test
