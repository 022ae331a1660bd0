// Chat completions: each rule has a stream that breaks it.
#include "tests/support/protocol/chat_checker.h"

#include "tests/support/protocol/broken_streams.h"

namespace tollgate::test {
namespace {

std::string Chunk(const std::string& choices, const std::string& usage = ",\"usage\":null") {
  return Data(R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m",)"
              R"("choices":[)" +
              choices + "]" + usage + "}");
}
std::string Delta(const std::string& delta, const std::string& finish = "null", int index = 0) {
  return Chunk(R"({"index":)" + std::to_string(index) + R"(,"delta":{)" + delta +
               R"(},"finish_reason":)" + finish + "}");
}
const char kUsage[] =
    R"(,"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}})";
const char kError[] =
    "data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\",\"code\":\"server_error\"}}\n\n";

Events ChatStream() {
  return {
      Delta(R"("role":"assistant","content":"")"),             // 0
      Delta(R"("reasoning_content":"hm")"),                    // 1
      Delta(R"("content":"caf\u00e9")"),                       // 2
      ": keep-alive\n\n",                                      // 3
      Delta(R"("role":"assistant","content":"")", "null", 1),  // 4
      Delta(R"("content":"two")", "null", 1),                  // 5
      Delta(
          R"("tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"f","arguments":"{"}}])"),  // 6
      Delta(
          R"("tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"g","arguments":""}},{"index":0,"function":{"arguments":"}"}}])"),  // 7
      Chunk(
          R"({"index":0,"delta":{"content":"!"},"logprobs":{"content":[{"token":"!"}],"refusal":null},"finish_reason":null})"),  // 8
      Delta("", R"("tool_calls")"),  // 9
      Delta("", R"("length")", 1),   // 10
      Chunk("", kUsage),             // 11
      "data: [DONE]\n\n",            // 12
  };
}

TEST(ChatChecker, AssemblesAsAClient) {
  const Checked checked = CheckChatStream(Join(ChatStream()), {2, true});
  EXPECT_EQ(Violations(checked), "");
  ASSERT_EQ(checked.choices.size(), 2u);
  const AssembledChoice& choice = checked.choices[0];
  EXPECT_EQ(choice.text, "caf\xc3\xa9!");
  EXPECT_EQ(choice.reasoning, "hm");
  EXPECT_EQ(choice.finish, "tool_calls");
  EXPECT_EQ(choice.calls, (std::vector<AssembledCall>{{"call_a", "f", "{}"}, {"call_b", "g", ""}}));
  EXPECT_EQ(choice.logprob_tokens, std::vector<std::string>{"!"});
  EXPECT_EQ(checked.choices[1].text, "two");
  EXPECT_EQ(checked.choices[1].finish, "length");
  EXPECT_EQ(checked.usage, (AssembledUsage{5, 4, 2, 0, 1}));
  EXPECT_EQ(checked.ending, Ending::kWell);
}

TEST(ChatChecker, EveryViolationIsFound) {
  const std::vector<Broken> table = {
      {"chat streams have no event lines", Change(1, "data: ", "event: x\ndata: ")},
      {"nothing follows the end", Insert(13, Delta(""))},
      {"nothing follows the end", Insert(9, kError)},
      {"the stream ends in [DONE] or an error", Drop(12)},
      {"a chunk has choices", Change(1, "\"choices\"", "\"choice\"")},
      {"a chunk has no extra", Change(1, "\"model\"", "\"extra\":1,\"model\"")},
      {"a delta has once content", Change(2, "\"content\"", "\"content\":\"\",\"content\"")},
      {"object is chat.completion.chunk", Change(1, ".chunk", "")},
      {"id is chatcmpl-", Change(1, "chatcmpl", "cmpl")},
      {"created is an integer", Change(1, ":7", ":7.0")},
      {"model is a string", Change(1, "\"m\"", "\"\"")},
      {"id, created and model stay the same", Change(2, "chatcmpl-1", "chatcmpl-2")},
      {"id, created and model stay the same", Change(2, ":7", ":8")},
      {"id, created and model stay the same", Change(2, "\"m\"", "\"n\"")},
      {"the usage chunk is the last one", Swap(10, 11)},
      {"the usage chunk follows every finish", Swap(10, 11)},
      {"only the last chunk has usage", Change(2, "\"usage\":null", "\"usage\":{}")},
      {"usage comes before [DONE]", Drop(11)},
      {"total_tokens is the sum", Change(11, ":9", ":8")},
      {"prompt_tokens is an integer", Change(11, ":5", ":null")},
      {"cached tokens are part of the prompt", Change(11, ":2", ":6")},
      {"reasoning tokens are part of the completion",
       Change(11, "reasoning_tokens\":1", "reasoning_tokens\":5")},
      {"a choice's index is below n", Change(5, "\"index\":1", "\"index\":2")},
      {"a choice's first delta has the role", Drop(0)},
      {"the role comes with empty content", Change(0, "\"content\":\"\"", "\"content\":null")},
      {"the role comes once", Insert(1, Delta(R"("role":"assistant","content":"")"))},
      {"a delta has no reasoning", Change(1, "reasoning_content", "reasoning")},
      {"content is a string", Change(2, "\"caf\\u00e9\"", "null")},
      {"nothing follows a choice's finish_reason", Swap(8, 9)},
      {"nothing follows a choice's finish_reason", Insert(10, Delta("", "\"stop\""))},
      {"finish_reason is a public one", Change(10, "length", "abort")},
      {"an answer with calls does not finish with stop", Change(9, "tool_calls", "stop")},
      {"tool_calls needs a call", Change(10, "length", "tool_calls")},
      {"every choice has finished", Drop(10)},
      {"tool_calls is an array that is not empty", Insert(6, Delta("\"tool_calls\":[]"))},
      {"tool indexes count up from 0", Change(6, "[{\"index\":0", "[{\"index\":1")},
      {"a call's first delta has id", Change(6, "\"id\":\"call_a\",", "")},
      {"a call's name is a string", Change(6, "\"name\":\"f\"", "\"name\":\"\"")},
      {"a call's type is function", Change(6, "\"type\":\"function\"", "\"type\":\"custom\"")},
      {"calls have ids of their own", Change(7, "call_b", "call_a")},
      {"a call's later delta has no id",
       Change(7, R"("index":0,"function")", R"("index":0,"id":"call_a","function")")},
      {"arguments is a string", Change(6, R"("arguments":"{")", R"("arguments":{})")},
      {"logprobs has refusal", Change(8, ",\"refusal\":null", "")},
  };
  ExpectFound(ChatStream(), table,
              [](const std::string& bytes) { return CheckChatStream(bytes, {2, true}); });
}

TEST(ChatChecker, WithoutIncludeUsage) {
  const Events legal = {Delta(R"("role":"assistant","content":"")"), Delta("", "\"stop\""),
                        "data: [DONE]\n\n"};
  Events plain;
  for (std::string event : legal) {
    if (const size_t at = event.find(",\"usage\":null"); at != std::string::npos) {
      event.erase(at, 13);
    }
    plain.push_back(event);
  }
  const std::vector<Broken> table = {
      {"without include_usage every chunk has a choice", Insert(2, Chunk("", kUsage))},
      {"only the last chunk has usage", Change(0, "]}", R"(],"usage":null})")},
  };
  ExpectFound(plain, table, [](const std::string& bytes) { return CheckChatStream(bytes); });
}

TEST(ChatChecker, ErrorsEndAStreamWithoutDone) {
  const Events legal = {Delta(R"("role":"assistant","content":"")"), kError};
  const std::vector<Broken> table = {
      {"nothing follows the end", Insert(2, "data: [DONE]\n\n")},
      {"the error event has no object", Change(1, "{\"error\"", "{\"object\":1,\"error\"")},
      {"code is a string", Change(1, "\"code\":\"server_error\"", "\"code\":500")},
      {"only invalid_request_error has a param",
       Change(1, "\"message\"", "\"param\":\"n\",\"message\"")},
  };
  const auto check = [](const std::string& bytes) { return CheckChatStream(bytes, {1, true}); };
  ExpectFound(legal, table, check);
  EXPECT_EQ(check(Join(legal)).error_code, "server_error");
  EXPECT_EQ(check(Join(legal)).ending, Ending::kError);
}

TEST(ChatChecker, Body) {
  const Events legal = {
      R"({"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"reasoning_content":"r","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}})"};
  const std::vector<Broken> table = {
      {"object is chat.completion", Change(0, "chat.completion\"", "chat.completion.chunk\"")},
      {"choices count up", Change(0, "\"index\":0", "\"index\":1")},
      {"the role is assistant", Change(0, "assistant", "user")},
      {"content is null only together with calls",
       [](Events& events) {
         const size_t at = events[0].find(",\"tool_calls\":[");
         events[0].erase(at, events[0].find("]}", at) + 1 - at);
       }},
      {"message has refusal", Change(0, "\"refusal\":null,", "")},
      {"a choice has logprobs", Change(0, "\"logprobs\":null,", "")},
      {"tool_calls is left out when empty",
       [](Events& events) {
         const size_t at = events[0].find(",\"tool_calls\":[") + 15;
         events[0].erase(at, events[0].find("]}", at) - at);
       }},
      {"the body has usage", Change(0, "\"usage\"", "\"used\"")},
      {"the body is a JSON object", Change(0, "{", "[")},
  };
  ExpectFound(legal, table, [](const std::string& body) { return CheckChatBody(body); });
}

}  // namespace
}  // namespace tollgate::test
