// Recorded answers of each kind of engine: what the caller gets, and what is charged. See
// docs/design/wire.md 2.4, 10.2, decisions 9, 31.
#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

using catalog::v1::EngineKind;

class RequestRunDialects : public RequestRunTest {
 protected:
  // chunks: JSON objects that are sent as events.
  Outcome Answer(EngineKind kind, const std::string& chunks, const std::string& end = "[DONE]") {
    UseEngines(1, 0, kind);
    const std::string last = end.empty() ? "" : ",\"data: " + end + "\\n\\n\"";
    const bool chat = request_.kind() == inference::v1::REQUEST_KIND_CHAT;
    request_.set_members_json((chat ? R"("messages":[{"role":"user","content":"hello there"}])"
                                    : R"("prompt":["a","b"])") +
                              std::string(R"(,"x_sim":{"raw_chunks":[)") + chunks + last + "]}");
    request_.set_request_id(Id::New().ToBytes());
    return Run();
  }
};

std::string Reasoning(const Outcome& outcome) {
  std::string text;
  for (const auto& event : outcome.events) text += event.delta().reasoning_json();
  return text;
}

std::string Calls(const Outcome& outcome) {
  std::string text;
  for (const auto& event : outcome.events) {
    for (const auto& call : event.delta().tool_calls()) {
      text += call.name_json() + call.arguments_json();
    }
  }
  return text;
}

// Returns "prompt/cached completion/reasoning", with a mark if a number is the router's own.
std::string Counted(const Outcome& outcome) {
  if (!outcome.ended()) return "no end";
  if (outcome.end().has_error()) return outcome.end().error().ShortDebugString();
  const auto& usage = outcome.end().usage();
  return std::to_string(usage.prompt_tokens()) + "/" + std::to_string(usage.cached_tokens()) + " " +
         std::to_string(usage.completion_tokens()) + "/" +
         std::to_string(usage.reasoning_tokens()) + (outcome.end().estimated() ? " estimated" : "");
}

TEST_F(RequestRunDialects, Vllm) {
  const Outcome outcome = Answer(
      catalog::v1::ENGINE_KIND_VLLM,
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"usage":{"prompt_tokens":9,"total_tokens":9,"completion_tokens":0}},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"reasoning":"Hm."},"logprobs":null,"finish_reason":null,"token_ids":null}],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2}},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi there"},"logprobs":null,"finish_reason":null,"token_ids":null}],"usage":{"prompt_tokens":9,"total_tokens":13,"completion_tokens":4}},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}],"usage":{"prompt_tokens":9,"total_tokens":14,"completion_tokens":5}},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"total_tokens":14,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}})");
  EXPECT_EQ(outcome.text(), "Hi there");
  EXPECT_EQ(Reasoning(outcome), "Hm.");
  EXPECT_EQ(outcome.finish(), inference::v1::FINISH_REASON_STOP);
  EXPECT_EQ(Counted(outcome), "9/4 5/2");
  EXPECT_EQ(outcome.end().charged_nano_usd(), 9 + 2 * 5);
}

TEST_F(RequestRunDialects, Sglang) {
  const Outcome outcome = Answer(
      catalog::v1::ENGINE_KIND_SGLANG,
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":"Hm.","tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":{"prompt_tokens":9,"total_tokens":11,"completion_tokens":2,"prompt_tokens_details":null,"reasoning_tokens":0}},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":null,"content":"Hi there","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":{"prompt_tokens":9,"total_tokens":13,"completion_tokens":4,"prompt_tokens_details":null,"reasoning_tokens":0}},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":null,"content":null,"reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":"stop","matched_stop":"END"}],"usage":null},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"total_tokens":14,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"reasoning_tokens":3}})");
  EXPECT_EQ(outcome.text(), "Hi there");
  EXPECT_EQ(Reasoning(outcome), "Hm.");
  EXPECT_EQ(Counted(outcome), "9/4 5/3") << "reasoning tokens are reported outside the details";
  EXPECT_EQ(outcome.end().charged_nano_usd(), 9 + 2 * 5);
}

TEST_F(RequestRunDialects, SglangThatIsAborted) {
  const Outcome outcome = Answer(
      catalog::v1::ENGINE_KIND_SGLANG,
      R"({"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}],"usage":null},)"
      R"({"id":"c","choices":[{"index":0,"delta":{"content":null},"finish_reason":"abort"}],"usage":null})");
  ASSERT_TRUE(outcome.ended());
  EXPECT_TRUE(outcome.end().has_error());
  EXPECT_EQ(outcome.end().charged_nano_usd(), 250 + 2 * 1) << "an estimate, and what was delivered";
}

TEST_F(RequestRunDialects, LlamaCpp) {
  const Outcome outcome = Answer(
      catalog::v1::ENGINE_KIND_LLAMACPP,
      R"({"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1,"id":"c","model":"m","system_fingerprint":"b0","object":"chat.completion.chunk"},)"
      R"({"choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":"Hm."}}],"created":1,"id":"c","model":"m","system_fingerprint":"b0","object":"chat.completion.chunk"},)"
      R"({"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hi there"}}],"created":1,"id":"c","model":"m","system_fingerprint":"b0","object":"chat.completion.chunk"},)"
      R"({"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"created":1,"id":"c","model":"m","system_fingerprint":"b0","object":"chat.completion.chunk"},)"
      R"({"choices":[],"created":1,"id":"c","model":"m","system_fingerprint":"b0","object":"chat.completion.chunk","usage":{"completion_tokens":5,"prompt_tokens":9,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":4}},"timings":{"cache_n":4,"prompt_n":5,"prompt_ms":4.5,"predicted_n":5,"predicted_ms":9.1}})");
  EXPECT_EQ(outcome.text(), "Hi there");
  EXPECT_EQ(Reasoning(outcome), "Hm.");
  EXPECT_EQ(Counted(outcome), "9/4 5/1");
  EXPECT_EQ(outcome.end().charged_nano_usd(), 9 + 2 * 5);
}

// Each choice is reported separately.
TEST_F(RequestRunDialects, LlamaCppWithTwoChoices) {
  const std::string chunks =
      R"({"choices":[{"finish_reason":null,"index":0,"delta":{"content":"one two three"}}]},)"
      R"({"choices":[{"finish_reason":null,"index":1,"delta":{"content":"four five"}}]},)"
      R"({"choices":[{"finish_reason":"length","index":1,"delta":{}}]},)"
      R"({"choices":[],"usage":{"completion_tokens":2,"prompt_tokens":9,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4}}},)"
      R"({"choices":[{"finish_reason":"length","index":0,"delta":{}}]},)"
      R"({"choices":[],"usage":{"completion_tokens":3,"prompt_tokens":9,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4}}})";
  request_.set_choices(2);
  for (const bool streamed : {true, false}) {
    request_.set_streamed(streamed);
    request_.set_max_tokens(10);
    options_.run.unstreamed_max_tokens = 2048;
    const Outcome outcome = Answer(catalog::v1::ENGINE_KIND_LLAMACPP, chunks);
    EXPECT_EQ(outcome.text(0), "one two three");
    EXPECT_EQ(outcome.text(1), "four five");
    EXPECT_EQ(Counted(outcome), "9/4 5/0");
    EXPECT_EQ(outcome.end().charged_nano_usd(), 9 + 2 * 5);
    EXPECT_TRUE(first_.requests().back().stream) << "a whole answer counts one choice only";
  }
}

TEST_F(RequestRunDialects, LlamaCppWithTwoPrompts) {
  request_.set_kind(inference::v1::REQUEST_KIND_COMPLETION);
  request_.set_choices(2);
  const Outcome outcome = Answer(
      catalog::v1::ENGINE_KIND_LLAMACPP,
      R"("data: null\n\n",)"
      R"({"choices":[{"text":"one two three","index":0,"logprobs":null,"finish_reason":null}],"object":"text_completion","id":"c"},)"
      R"({"choices":[{"text":"four five","index":1,"logprobs":null,"finish_reason":null}],"object":"text_completion","id":"c"},)"
      R"({"choices":[{"text":"","index":0,"logprobs":null,"finish_reason":"length"}],"object":"text_completion","usage":{"completion_tokens":3,"prompt_tokens":9,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":0}},"id":"c"},)"
      R"({"choices":[{"text":"","index":1,"logprobs":null,"finish_reason":"length"}],"object":"text_completion","usage":{"completion_tokens":2,"prompt_tokens":7,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":0}},"id":"c"})");
  EXPECT_EQ(Counted(outcome), "16/0 5/0");
}

TEST_F(RequestRunDialects, Tgi) {
  const Outcome outcome = Answer(
      catalog::v1::ENGINE_KIND_TGI,
      R"({"object":"chat.completion.chunk","id":"","created":1,"model":"m","system_fingerprint":"3.3.0-native","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"logprobs":null,"finish_reason":null}],"usage":null},)"
      R"({"object":"chat.completion.chunk","id":"","created":1,"model":"m","system_fingerprint":"3.3.0-native","choices":[{"index":0,"delta":{"role":"assistant","content":" there"},"logprobs":null,"finish_reason":"stop"}],"usage":null},)"
      R"({"object":"chat.completion.chunk","id":"","created":1,"model":"m","system_fingerprint":"3.3.0-native","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}})");
  EXPECT_EQ(outcome.text(), "Hi there");
  EXPECT_EQ(Counted(outcome), "9/0 3/0");
}

TEST_F(RequestRunDialects, ToolCallOfAnOlderTgi) {
  const Outcome outcome = Answer(
      catalog::v1::ENGINE_KIND_TGI,
      R"({"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":{"index":0,"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":"}}},"finish_reason":null}]},)"
      R"({"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":{"index":0,"id":"","type":"function","function":{"name":"","arguments":"1}"}}},"finish_reason":"eos_token"}]})");
  EXPECT_EQ(Calls(outcome), R"(f{\"a\":1})");
  EXPECT_EQ(outcome.finish(), inference::v1::FINISH_REASON_TOOL_CALLS);
  EXPECT_EQ(Counted(outcome), "250/0 2/0 estimated") << "it reports no usage";
}

TEST_F(RequestRunDialects, TgiThatFailsBeforeItsFirstToken) {
  const Outcome outcome = Answer(
      catalog::v1::ENGINE_KIND_TGI,
      R"({"error":"Request failed during generation: Server error: SECRET","error_type":"generation"})",
      "");
  ASSERT_TRUE(outcome.ended());
  EXPECT_TRUE(outcome.end().has_error());
  EXPECT_EQ(outcome.end().charged_nano_usd(), 0);
  EXPECT_EQ(outcome.end().ShortDebugString().find("SECRET"), std::string::npos);
}

TEST_F(RequestRunDialects, Ollama) {
  const Outcome outcome = Answer(
      catalog::v1::ENGINE_KIND_OLLAMA,
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Hm."},"finish_reason":null}]},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi there"},"finish_reason":null}]},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":null}]},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"tool_calls"}]},)"
      R"({"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":8,"total_tokens":17}})");
  EXPECT_EQ(outcome.text(), "Hi there");
  EXPECT_EQ(Reasoning(outcome), "Hm.");
  EXPECT_EQ(Calls(outcome), R"(f{\"a\":1})");
  EXPECT_EQ(outcome.finish(), inference::v1::FINISH_REASON_TOOL_CALLS);
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 8);
}

// A server that reports no usage and sends no end marker.
TEST_F(RequestRunDialects, AServerThatKnowsTheLeastOfTheFormat) {
  const Outcome outcome = Answer(catalog::v1::ENGINE_KIND_OPENAI,
                                 R"({"choices":[{"delta":{"content":"Hi"}}]},)"
                                 R"({"choices":[{"delta":{"content":" there"}}]},)"
                                 R"({"choices":[{"delta":{},"finish_reason":"stop"}]})",
                                 "");
  EXPECT_EQ(outcome.text(), "Hi there");
  EXPECT_EQ(Counted(outcome), "250/0 2/0 estimated");
}

}  // namespace
}  // namespace tollgate::inference_router
