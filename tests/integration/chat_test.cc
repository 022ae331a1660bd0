// Chat completions through the whole product: shapes, tools, reasoning, usage. See
// docs/design/wire.md 2.
#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

class ChatTest : public SystemTest {};
INSTANTIATE_TEST_SUITE_P(Systems, ChatTest, kSystems, [](const auto& info) { return info.param; });

constexpr char kTools[] =
    R"(,"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}},
      {"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{"zone":{"type":"string"}}}}}])";

TEST_P(ChatTest, ResponseHasThePublishedShapeAndNoEngineExtras) {
  const ApiKey key = Customer();
  const HttpResponse answer = Chat(key, R"(,"x_sim":{"tokens":12})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json body = answer.json();
  EXPECT_EQ(body["object"].str(), "chat.completion");
  EXPECT_EQ(body["id"].str().rfind("chatcmpl-", 0), 0u);
  EXPECT_EQ(body["model"].str(), "sim/model");
  EXPECT_GT(body["created"].integer(), 1'700'000'000);
  const Json& choice = body["choices"][0];
  EXPECT_EQ(choice["index"].integer(-1), 0);
  EXPECT_EQ(choice["message"]["role"].str(), "assistant");
  EXPECT_FALSE(choice["message"]["content"].str().empty());
  EXPECT_TRUE(choice["message"].has("refusal"));
  EXPECT_FALSE(choice["message"].has("tool_calls"));
  EXPECT_TRUE(choice.has("logprobs"));
  EXPECT_EQ(choice["finish_reason"].str(), "stop");
  EXPECT_EQ(body["usage"]["completion_tokens"].integer(), 12);
  EXPECT_EQ(
      body["usage"]["total_tokens"].integer(),
      body["usage"]["prompt_tokens"].integer() + body["usage"]["completion_tokens"].integer());
  for (const char* extra : {"prompt_logprobs", "kv_transfer_params", "stop_reason"}) {
    EXPECT_EQ(answer.body.find(extra), std::string::npos) << extra;
  }
  EXPECT_FALSE(answer.header("x-request-id").empty());
}

TEST_P(ChatTest, StreamHasRoleTextFinishAndDoneAndEqualsTheUnstreamedResponse) {
  const ApiKey key = Customer();
  const SseStream stream = ChatStream(key, R"(,"x_sim":{"tokens":12})");
  ASSERT_EQ(stream.head.status, 200) << stream.head.body;
  EXPECT_EQ(stream.head.header("content-type").rfind("text/event-stream", 0), 0u);
  EXPECT_TRUE(stream.done());
  EXPECT_TRUE(stream.complete);
  EXPECT_EQ(stream.FinishReason(), "stop");
  const Json first = stream.events[0].json();
  EXPECT_EQ(first["choices"][0]["delta"]["role"].str(), "assistant");
  int finishes = 0;
  for (const SseEvent& event : stream.events) {
    if (event.data == "[DONE]") continue;
    const Json chunk = event.json();
    EXPECT_EQ(chunk["object"].str(), "chat.completion.chunk");
    EXPECT_EQ(chunk["id"].str(), first["id"].str());
    EXPECT_EQ(chunk["created"].integer(), first["created"].integer());
    EXPECT_EQ(chunk["model"].str(), "sim/model");
    EXPECT_EQ(chunk["choices"].size(), 1u) << "no empty choices and no usage unless requested";
    EXPECT_FALSE(chunk["usage"].is_object());
    EXPECT_EQ(event.data.find('\n'), std::string::npos);
    finishes += chunk["choices"][0]["finish_reason"].is_string() ? 1 : 0;
  }
  EXPECT_EQ(finishes, 1);
  EXPECT_EQ(
      stream.Text(),
      Chat(key, R"(,"x_sim":{"tokens":12})").json()["choices"][0]["message"]["content"].str());
}

TEST_P(ChatTest, IncludeUsageAddsOneLastChunkWithoutChoices) {
  const SseStream stream =
      ChatStream(Customer(), R"(,"stream_options":{"include_usage":true},"x_sim":{"tokens":9})");
  ASSERT_TRUE(stream.done()) << stream.head.body;
  const Json last = stream.events[stream.events.size() - 2].json();
  EXPECT_EQ(last["choices"].size(), 0u);
  EXPECT_EQ(last["usage"]["completion_tokens"].integer(), 9);
  for (size_t i = 0; i + 2 < stream.events.size(); ++i) {
    EXPECT_FALSE(stream.events[i].json()["usage"].is_object());
  }
}

TEST_P(ChatTest, ParallelToolCallsStreamedOrNot) {
  const ApiKey key = Customer();
  const std::string calls =
      R"(,"x_sim":{"tool_calls":[{"name":"get_weather","arguments":{"city":"Oslo"}},{"name":"get_time","arguments":{"zone":"UTC"}}]})";
  const Json message = Chat(key, kTools + calls).json()["choices"][0];
  EXPECT_EQ(message["finish_reason"].str(), "tool_calls");
  EXPECT_TRUE(message["message"].has("content") && message["message"]["content"].is_null());
  ASSERT_EQ(message["message"]["tool_calls"].size(), 2u);
  EXPECT_EQ(message["message"]["tool_calls"][1]["function"]["arguments"].str(),
            R"({"zone":"UTC"})");
  const SseStream stream = ChatStream(key, kTools + calls);
  std::string arguments[2];
  std::string names[2];
  for (const SseEvent& event : stream.events) {
    const Json chunk = event.json();
    for (const Json& call : chunk["choices"][0]["delta"]["tool_calls"].elements()) {
      const int64_t index = call["index"].integer(-1);
      ASSERT_TRUE(index == 0 || index == 1);
      arguments[index] += call["function"]["arguments"].str();
      if (call["function"].has("name")) {
        EXPECT_EQ(names[index], "") << "the name is sent once";
        EXPECT_FALSE(call["id"].str().empty());
        EXPECT_EQ(call["type"].str(), "function");
        names[index] = call["function"]["name"].str();
      }
    }
  }
  EXPECT_EQ(names[0], "get_weather");
  EXPECT_EQ(arguments[0], R"({"city":"Oslo"})");
  EXPECT_EQ(arguments[1], R"({"zone":"UTC"})");
  EXPECT_EQ(stream.FinishReason(), "tool_calls");
}

TEST_P(ChatTest, ForcedToolCallFinishesWithToolCallsWhenTheEngineSendsStop) {
  const ApiKey key = Customer();
  const std::string forced =
      std::string(kTools) +
      R"(,"tool_choice":{"type":"function","function":{"name":"get_weather"}})";
  EXPECT_EQ(Chat(key, forced).json()["choices"][0]["finish_reason"].str(), "tool_calls");
  EXPECT_EQ(ChatStream(key, forced).FinishReason(), "tool_calls");
}

TEST_P(ChatTest, ReasoningIsReturnedAsReasoningContentAndCounted) {
  const ApiKey key = Customer();
  const std::string more =
      R"(,"stream_options":{"include_usage":true},"x_sim":{"tokens":4,"reasoning_tokens":6})";
  const SseStream stream = ChatStream(key, more);
  EXPECT_FALSE(stream.Text("reasoning_content").empty());
  EXPECT_TRUE(stream.Text("reasoning").empty());
  EXPECT_EQ(stream.Usage()["completion_tokens"].integer(), 10);
  const Json message =
      Chat(key, R"(,"x_sim":{"tokens":4,"reasoning_tokens":6})").json()["choices"][0]["message"];
  EXPECT_EQ(message["reasoning_content"].str(), stream.Text("reasoning_content"));
  EXPECT_FALSE(message.has("reasoning"));
  EXPECT_EQ(message["content"].str(), stream.Text());
}

TEST_P(ChatTest, MaxTokensReachedInsideTheReasoningGivesEmptyContentAndLength) {
  const Json answer =
      Chat(Customer(), R"(,"max_tokens":3,"x_sim":{"tokens":4,"reasoning_tokens":6})").json();
  EXPECT_TRUE(answer["choices"][0]["message"]["content"].is_string()) << answer.Dump();
  EXPECT_EQ(answer["choices"][0]["message"]["content"].str(), "");
  EXPECT_EQ(answer["choices"][0]["finish_reason"].str(), "length");
}

TEST_P(ChatTest, SeveralChoicesAreSeparate) {
  const ApiKey key = Customer();
  const Json answer = Chat(key, R"(,"n":3,"x_sim":{"tokens":5})").json();
  ASSERT_EQ(answer["choices"].size(), 3u) << answer.Dump();
  EXPECT_EQ(answer["usage"]["completion_tokens"].integer(), 15);
  const SseStream stream = ChatStream(key, R"(,"n":3,"x_sim":{"tokens":5})");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(stream.Text("content", i), answer["choices"][i]["message"]["content"].str());
    EXPECT_EQ(stream.FinishReason(i), "stop");
  }
}

TEST_P(ChatTest, EngineFieldsAreForwardedUnchanged) {
  const std::string tag = NewTag();
  ASSERT_EQ(
      Chat(
          Customer(),
          R"(,"top_k":7,"chat_template_kwargs":{"enable_thinking":false,"x":[1,2.50]},"seed":5,"stop":["zzz"],"user":null,"x_sim":{"tag":")" +
              tag + R"("})")
          .status,
      200);
  const auto requests = EngineRequests(tag);
  ASSERT_EQ(requests.size(), 1u);
  const Json sent = Json::Parse(requests[0].body).value();
  EXPECT_EQ(sent["top_k"].integer(), 7);
  EXPECT_EQ(sent["chat_template_kwargs"].Dump(), R"({"enable_thinking":false,"x":[1,2.50]})");
  EXPECT_EQ(sent["stop"][0].str(), "zzz");
  EXPECT_FALSE(sent.has("user")) << "null means absent";
  EXPECT_EQ(sent["stream"].boolean(), !WholeAnswers()) << "its worst case is above the slice";
  EXPECT_EQ(sent["stream_options"]["include_usage"].boolean(), !WholeAnswers());
  for (const auto& header : requests[0].headers) {
    EXPECT_EQ(header.second.find("sk-"), std::string::npos)
        << "the caller's key must not reach the engine";
  }
}

TEST_P(ChatTest, MaxTokensZeroIsAnsweredWithoutTheEngineAndForFree) {
  const ApiKey key = Customer();
  const std::string tag = NewTag();
  const Json answer = Chat(key, R"(,"max_tokens":0,"x_sim":{"tag":")" + tag + R"("})").json();
  EXPECT_EQ(answer["choices"][0]["message"]["content"].str(), "") << answer.Dump();
  EXPECT_EQ(answer["choices"][0]["finish_reason"].str(), "length");
  EXPECT_GT(answer["usage"]["prompt_tokens"].integer(), 0);
  EXPECT_EQ(EngineRequests(tag).size(), 0u);
  EXPECT_EQ(SpentOf(key), 0);
}

TEST_P(ChatTest, UnicodeAndStructuredOutputAreUnchanged) {
  const ApiKey key = Customer();
  const std::string text = "Grüße 東京 👩‍💻 \"quoted\" \\ back\tslash\n";
  const std::string more = ",\"x_sim\":{\"text\":" + JsonQuoted(text) + "}";
  EXPECT_EQ(Chat(key, more).json()["choices"][0]["message"]["content"].str(), text);
  EXPECT_EQ(ChatStream(key, more).Text(), text);
  const Json json =
      Chat(
          key,
          R"(,"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":{"type":"object","properties":{"n":{"type":"integer"}}}}})")
          .json();
  const auto value = Json::Parse(json["choices"][0]["message"]["content"].str());
  ASSERT_TRUE(value) << json.Dump();
  EXPECT_TRUE((*value)["n"].is_number());
}

TEST_P(ChatTest, ModelsListIsPublicAndHidesPrivateModels) {
  for (const char* path : {"/v1/models", "/openai/v1/models"}) {
    const HttpResponse answer = Http(cluster().port(), "GET", path);
    ASSERT_EQ(answer.status, 200) << answer.body;
    const Json list = answer.json();
    bool seen = false;
    for (const Json& model : list["data"].elements()) {
      EXPECT_NE(model["id"].str(), "sim/private");
      if (model["id"].str() != "sim/model") continue;
      seen = true;
      EXPECT_EQ(model["context_window"].integer(), 131'072);
      EXPECT_EQ(model["max_output_tokens"].integer(), 65'536);
      EXPECT_EQ(model["max_input_tokens"].integer(), 131'072 - 65'536);
      EXPECT_NE(model["pricing"].Dump().find(kInputPrice), std::string::npos) << model.Dump();
    }
    EXPECT_TRUE(seen);
  }
  const ApiKey key = Customer(0, {.allowed_models = {"sim/text"}});
  const Json own = Http(cluster().port(), "GET", "/v1/models", key.headers()).json();
  ASSERT_EQ(own["data"].size(), 1u);
  EXPECT_EQ(own["data"][0]["id"].str(), "sim/text");
  EXPECT_EQ(
      Http(cluster().port(), "GET", "/v1/models", {{"Authorization", "Bearer nonsense"}}).status,
      200);
}

// Bodies above 256 KiB are decoded outside of the event loops: the engine gets them whole, and a
// client that disconnects meanwhile is not charged.
TEST_P(ChatTest, LargeBodiesArriveWholeAndMayBeAbandoned) {
  const ApiKey key = Customer();
  const std::string tag = NewTag();
  const std::string large = ",\"x_note\":\"" + std::string(2'000'000, 'm') + "\"";
  const HttpResponse answer =
      Chat(key, large + ",\"x_sim\":{\"tokens\":5,\"tag\":\"" + tag + "\"}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::vector<SimRequest> requests = EngineRequests(tag);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_NE(requests[0].body.find(large), std::string::npos);
  const int64_t spent = SpentOf(key);

  for (int i = 0; i < 8; ++i) {
    HttpConnection connection(cluster().port());
    HeaderList headers = key.headers();
    EXPECT_TRUE(connection.SendRequest("POST", kChat, headers, ChatBody(large) + "broken"));
    connection.Close(/*reset=*/i % 2 == 0);
  }
  EXPECT_EQ(Chat(key, ",\"x_sim\":{\"tokens\":5}").status, 200);
  EXPECT_GT(SpentOf(key), spent);
}

}  // namespace
}  // namespace tollgate::test
