// Legacy completions: each rule has a stream that breaks it.
#include "tests/support/protocol/completions_checker.h"

#include "tests/support/protocol/broken_streams.h"

namespace tollgate::test {
namespace {

const char kUsage[] =
    R"(,"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}})";

std::string TextChunk(const std::string& text, const std::string& finish = "null", int index = 0) {
  return Data(R"({"id":"cmpl-1","object":"text_completion","created":7,"model":"m","choices":[)"
              R"({"text":")" +
              text + R"(","index":)" + std::to_string(index) +
              R"(,"logprobs":null,"finish_reason":)" + finish + R"(}],"usage":null})");
}

TEST(CompletionsChecker, EveryViolationIsFound) {
  const Events legal = {
      TextChunk("a"),                  // 0
      TextChunk("b", "null", 1),       // 1
      TextChunk("c", "\"stop\""),      // 2
      TextChunk("", "\"length\"", 1),  // 3
      Data(R"({"id":"cmpl-1","object":"text_completion","created":7,"model":"m","choices":[])" +
           std::string(kUsage) + "}"),  // 4
      "data: [DONE]\n\n",               // 5
  };
  const auto check = [](const std::string& bytes) {
    return CheckCompletionsStream(bytes, {2, true});
  };
  const std::vector<Broken> table = {
      {"completion streams have no event lines", Change(1, "data: ", "event: x\ndata: ")},
      {"object is text_completion", Change(1, "text_completion", "text_completion.chunk")},
      {"id is cmpl-", Change(0, "cmpl-", "chatcmpl-")},
      {"id, created and model stay the same", Change(1, ":7", ":8")},
      {"a choice's index is below", Change(1, "\"index\":1", "\"index\":2")},
      {"a choice has logprobs", Change(1, "\"logprobs\":null,", "")},
      {"text is a string", Change(1, "\"b\"", "null")},
      {"nothing follows a choice's finish_reason", Insert(3, TextChunk("x"))},
      {"finish_reason is a public one", Change(2, "\"stop\"", "\"tool_calls\"")},
      {"every choice has finished", Drop(3)},
      {"the usage chunk follows every finish", Swap(3, 4)},
      {"the usage chunk is the last one", Swap(3, 4)},
      {"usage comes before [DONE]", Drop(4)},
      {"only the last chunk has usage", Change(1, "\"usage\":null", "\"usage\":{}")},
      {"nothing follows the end", Insert(6, TextChunk("x"))},
      {"the stream ends in [DONE] or an error", Drop(5)},
      {"the stream ends in [DONE] or an error", [](Events& events) { events.clear(); }},
  };
  ExpectFound(legal, table, check);
  const Checked checked = check(Join(legal));
  EXPECT_EQ(checked.choices[0].text, "ac");
  EXPECT_EQ(checked.choices[1].text, "b");
  EXPECT_EQ(checked.usage, (AssembledUsage{5, 4, 2, 0, 1}));
}

}  // namespace
}  // namespace tollgate::test
