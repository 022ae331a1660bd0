// What the engine receives of unusual requests: strings that no engine accepts, late system
// messages. See decisions 38 and 39.
#include "tests/integration/translation_fixture.h"

namespace tollgate::test {
namespace {

// The members of a request with this text, a JSON string, in each public format.
std::vector<std::pair<const char*, std::string>> Everywhere(const std::string& text) {
  return {
      {kChat, R"("messages":[{"role":"user","content":)" + text + "}]"},
      {kChat, R"("messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,)"
              R"("tool_calls":[{"id":)" +
                  text + R"(,"type":"function","function":{"name":"f","arguments":"{}"}}]},)" +
                  R"({"role":"tool","tool_call_id":)" + text + R"(,"content":)" + text + "}]"},
      {kChat,
       R"("messages":[{"role":"user","name":)" + text + R"(,"content":"hi"}],"user":)" + text},
      {kMessages, R"("max_tokens":9,"messages":[{"role":"user","content":)" + text + "}]"},
      {kMessages, R"("max_tokens":9,"messages":[{"role":"user","content":"hi"},)"
                  R"({"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f",)"
                  R"("input":{"a":)" +
                      text + R"(}}]},{"role":"user","content":[{"type":"tool_result",)" +
                      R"("tool_use_id":"i","content":)" + text + "}]}]"},
      {kResponses, R"("input":)" + text + R"(,"instructions":)" + text},
      {kResponses, R"("input":[{"role":"user","content":"hi"},{"type":"function_call",)"
                   R"("call_id":"i","name":"f","arguments":"{}"},{"type":"function_call_output",)"
                   R"("call_id":"i","output":)" +
                       text + "}]"},
      {kCompletions, R"("prompt":["x",)" + text + "]"},
      {kEmbeddings, R"("input":[)" + text + R"(,"x"])"},
  };
}

TEST_P(TranslationTest, ANulReachesEnginesThatTakeIt) {  // decision 38
  for (const auto& [path, members] : Everywhere(R"("a\u0000b")")) {
    SCOPED_TRACE(path + members);
    EXPECT_NE(Sent(path, members).find("a\\u0000b"), std::string::npos);
  }
}

TEST_P(TranslationTest, ANulIsReplacedForEnginesThatDoNot) {
  for (const auto& [path, members] : Everywhere(R"("a\u0000b")")) {
    SCOPED_TRACE(path + members);
    const std::string sent = Sent(path, members, "sim/cstrings");
    EXPECT_NE(sent.find("a\\ufffdb"), std::string::npos) << sent;
    EXPECT_EQ(sent.find("u0000"), std::string::npos) << sent;
  }
}

TEST_P(TranslationTest, ALoneSurrogateIsReplaced) {
  for (const auto& [path, members] : Everywhere(R"("a\ud83db")")) {
    SCOPED_TRACE(path + members);
    const std::string sent = Sent(path, members);
    EXPECT_NE(sent.find("a\\ufffdb"), std::string::npos) << sent;
    EXPECT_EQ(sent.find("ud83d"), std::string::npos) << sent;
  }
  EXPECT_EQ(Post(kChat, "\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]").status, 400)
      << "bytes that are not UTF-8 are not JSON";
}

TEST_P(TranslationTest, AModelWithANulInItsNameIsUnknown) {
  const HttpResponse answer =
      Post(kChat, R"("messages":[{"role":"user","content":"x"}])", "sim/model\\u0000");
  EXPECT_EQ(answer.status, 404) << answer.body;
  EXPECT_EQ(answer.json()["error"]["message"].str(),
            std::string("The model 'sim/model\0' is not in the catalog.", 45))
      << answer.body;
  EXPECT_EQ(Post(kCompletions, R"("prompt":"x")", "sim/mo\\u0000del").status, 404);
}

TEST_P(TranslationTest, CountTokensTakesANul) {
  const HttpResponse answer = Post("/v1/messages/count_tokens",
                                   R"("messages":[{"role":"user","content":"one\u0000 two"}])");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_GT(answer.json()["input_tokens"].integer(), 2);
}

// The engine's tool call with a NUL in its arguments can be sent back.
TEST_P(TranslationTest, ANulFromTheModelComesAndGoes) {
  const HttpResponse answer = Post(
      kChat, R"("messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":)"
             R"({"name":"f"}}],"x_sim":{"text":"a\u0000b","tool_calls":[{"name":"f","arguments":)"
             R"({"a":"\u0000"}}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json message = answer.json()["choices"][0]["message"];
  const std::string again =
      R"("messages":[{"role":"user","content":"x"},)" + message.Dump() +
      R"(,{"role":"tool","tool_call_id":"i","content":"\u0000"},{"role":"user","content":"y"}])";
  EXPECT_NE(Sent(kChat, again).find("\\u0000"), std::string::npos);
  EXPECT_EQ(Sent(kChat, again, "sim/cstrings").find("u0000"), std::string::npos);
}

constexpr char kLate[] =
    R"("messages":[{"role":"user","content":"one"},{"role":"system","content":"two"},)"
    R"({"role":"assistant","content":"three"},{"role":"user","content":"four"}])";
constexpr char kLateItems[] =
    R"("input":[{"role":"user","content":"one"},{"role":"developer","content":"two"},)"
    R"({"role":"assistant","content":"three"},{"role":"user","content":"four"}])";

std::string RolesOf(const std::string& body) {
  std::string roles;
  const std::optional<Json> parsed = Json::Parse(body);
  if (!parsed) return "not JSON";
  for (const Json& message : (*parsed)["messages"].elements()) roles += message["role"].str()[0];
  return roles;
}

TEST_P(TranslationTest, ALateSystemMessageIsFoldedUnlessTheModelTakesIt) {  // decision 39
  const std::string late_with_limit = R"("max_tokens":9,)" + std::string(kLate);
  for (const auto& [path, members] : {std::pair<const char*, std::string>{kChat, kLate},
                                      {kMessages, late_with_limit},
                                      {kResponses, kLateItems}}) {
    SCOPED_TRACE(path);
    const std::string folded = Sent(path, members);
    EXPECT_EQ(RolesOf(folded), "uau") << folded;
    const std::string first = folded.substr(0, folded.find("three"));
    EXPECT_NE(first.find("two"), std::string::npos)
        << "behind the user's first message: " << folded;
    EXPECT_EQ(RolesOf(Sent(path, members, "sim/anywhere")), "usau");
  }
}

// The charge is for the prompt that the engine received.
TEST_P(TranslationTest, AFoldedMessageIsBilledAsTheEngineGotIt) {
  const HttpResponse answer = Post(kChat, kLate);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json usage = answer.json()["usage"];
  EXPECT_EQ(usage["prompt_tokens"].integer(), world().engine.requests().back().prompt_tokens);
  EXPECT_EQ(Spent(), usage["prompt_tokens"].integer() * 1'000 +
                         usage["completion_tokens"].integer() * 3'000);
}

}  // namespace
}  // namespace tollgate::test
