#include "tests/support/sim_tokenizer.h"

#include <gtest/gtest.h>

#include "tests/support/engine_sim.h"
#include "tests/support/http.h"
#include "tests/support/sim_text.h"

namespace tollgate::test {
namespace {

// In every dialect the tokenizer's count equals the prompt_tokens of the chat.
TEST(SimTokenizer, CountsAsTheChatEndpoint) {
  const std::string members =
      R"("messages":[{"role":"system","content":"Be  brief."},)"
      R"({"role":"user","content":[{"type":"text","text":"Grüße 東京東京東京 "},{"type":"text","text":""}]},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{ \"a\": 1 }"}}]},)"
      R"({"role":"tool","tool_call_id":"c","content":"42"}],)"
      R"("tools":[{"type":"function","function":{"name":"f","description":"does this and that","parameters":{}}}])";
  const auto sum = [](const Json& answer, SimDialect dialect) -> int64_t {
    if (dialect == SimDialect::kTgi) {
      return static_cast<int64_t>(answer["tokenize_response"].size());
    }
    if (dialect == SimDialect::kLlamaCpp) return CountTokens(answer["prompt"].str());
    return answer["count"].integer(-1);
  };
  for (const auto& [dialect, path] :
       {std::pair(SimDialect::kVllm, "/tokenize"), std::pair(SimDialect::kSglang, "/tokenize"),
        std::pair(SimDialect::kLlamaCpp, "/apply-template"),
        std::pair(SimDialect::kTgi, "/chat_tokenize")}) {
    EngineSim sim({.dialect = dialect});
    ASSERT_TRUE(sim.Start());
    const std::string body = R"({"model":"sim/model",)" + members + "}";
    const Json chat = Http(sim.port(), "POST", "/v1/chat/completions", {}, body).json();
    const Json count = Http(sim.port(), "POST", path, {}, body).json();
    EXPECT_GT(chat["usage"]["prompt_tokens"].integer(), 20);
    EXPECT_EQ(sum(count, dialect), chat["usage"]["prompt_tokens"].integer()) << path;
  }
}

}  // namespace
}  // namespace tollgate::test
