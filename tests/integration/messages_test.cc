// The Messages surface through the whole product: shapes, streams, tools, endings, errors. See
// docs/design/wire.md 6; decisions 4, 8, 12, 23, 25, 26, 30, 33.
#include "tests/integration/system_test.h"
#include "tests/support/protocol/messages_checker.h"

namespace tollgate::test {
namespace {

constexpr char kPath[] = "/v1/messages";

class MessagesTest : public SystemTest {
 protected:
  HttpResponse Send(const ApiKey& key, const std::string& more,
                    const std::string& model = "sim/model") {
    return cluster().Post(key, kPath, Body(more, model));
  }
  // A complete stream, checked for every rule of the protocol.
  Checked Stream(const ApiKey& key, const std::string& more, std::string* bytes = nullptr) {
    const HttpResponse answer = Send(key, ",\"stream\":true" + more);
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.header("content-type").rfind("text/event-stream", 0), 0u);
    EXPECT_EQ(answer.header("x-accel-buffering"), "no");
    if (bytes != nullptr) *bytes = answer.body;
    Checked checked = CheckMessagesStream(answer.body);
    EXPECT_TRUE(checked.violations.empty()) << checked.violations[0] << "\n" << answer.body;
    EXPECT_EQ(checked.model, "sim/model");
    return checked;
  }
  Checked Whole(const ApiKey& key, const std::string& more) {
    const HttpResponse answer = Send(key, more);
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.header("content-type").rfind("application/json", 0), 0u);
    Checked checked = CheckMessagesBody(answer.body);
    EXPECT_TRUE(checked.violations.empty()) << checked.violations[0] << "\n" << answer.body;
    return checked;
  }
  static std::string Body(const std::string& more, const std::string& model = "sim/model") {
    return "{\"model\":\"" + model + "\",\"max_tokens\":5000" +
           (more.find("\"messages\":") == std::string::npos
                ? R"(,"messages":[{"role":"user","content":"hello there"}])"
                : "") +
           more + "}";
  }
};
INSTANTIATE_TEST_SUITE_P(Systems, MessagesTest, kSystems,
                         [](const auto& info) { return info.param; });

// Compares the Messages envelope exactly.
void ExpectMessagesError(const HttpResponse& answer, int status, const std::string& code,
                         const std::string& type, const std::string& names = "") {
  EXPECT_EQ(answer.status, status) << answer.body << answer.error;
  const Json body = answer.json();
  EXPECT_EQ(body["type"].str(), "error");
  EXPECT_EQ(body["error"].size(), 3u) << answer.body;
  EXPECT_EQ(body["error"]["type"].str(), type);
  EXPECT_EQ(body["error"]["code"].str(), code);
  EXPECT_NE(body["error"]["message"].str().find(names), std::string::npos) << answer.body;
  EXPECT_FALSE(body["error"]["message"].str().empty());
  EXPECT_EQ(answer.header("content-type").rfind("application/json", 0), 0u);
  EXPECT_EQ(answer.header("request-id"), answer.header("x-request-id"));
  EXPECT_FALSE(answer.header("x-request-id").empty());
}

// Decision 38: a NUL from the engine is sent as the escape that JSON has for it.
TEST_P(MessagesTest, ANulFromTheEngineArrives) {
  const ApiKey key = Customer();
  const std::string more =
      R"(,"tools":[{"name":"f","input_schema":{"type":"object"}}],"x_sim":{"text":"a\u0000b",)"
      R"("tool_calls":[{"name":"f","arguments":{"a":"\u0000"}}]})";
  const Checked stream = Stream(key, more);
  EXPECT_EQ(stream.choices[0].text, std::string("a\0b", 3));
  ASSERT_EQ(stream.choices[0].calls.size(), 1u);
  EXPECT_EQ(stream.choices[0].calls[0].arguments, R"({"a":"\u0000"})");
  EXPECT_EQ(Whole(key, more).choices, stream.choices);
}

TEST_P(MessagesTest, ThinkingTextAndUsageAreEqualStreamedOrNot) {
  const ApiKey key = Customer();
  const std::string script = R"(,"x_sim":{"tokens":12,"reasoning_tokens":6})";
  const Checked whole = Whole(key, script);
  const Checked stream = Stream(key, script);
  EXPECT_EQ(stream.choices, whole.choices);
  EXPECT_FALSE(whole.choices[0].text.empty());
  EXPECT_FALSE(whole.choices[0].reasoning.empty());
  EXPECT_EQ(whole.choices[0].finish, "end_turn");
  EXPECT_EQ(stream.ending, Ending::kWell);
  ASSERT_TRUE(whole.usage && stream.usage);
  EXPECT_TRUE(stream.usage->SameButForEstimates(*whole.usage));
  EXPECT_EQ(whole.usage->completion, 18);
  // The same conversation as a chat has the same prompt size, and both are charged.
  const Json chat = Chat(key, R"(,"x_sim":{"tokens":1})").json()["usage"];
  EXPECT_EQ(whole.usage->prompt, chat["prompt_tokens"].integer());
  EXPECT_EQ(SpentOf(key), 2 * Charge(whole.usage->prompt, 18) + Charge(whole.usage->prompt, 1));
}

TEST_P(MessagesTest, MessageStartHasThePromptAndCacheReadsAreSeparate) {
  std::string bytes;
  const Checked stream = Stream(Customer(), R"(,"x_sim":{"tokens":3,"cached_tokens":2})", &bytes);
  ASSERT_TRUE(stream.usage);
  EXPECT_EQ(stream.usage->cached, 2);
  const std::string input = std::to_string(stream.usage->prompt - 2);
  const std::string counters = "\"usage\":{\"input_tokens\":" + input +
                               ",\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":2,";
  const size_t start = bytes.find(counters);
  ASSERT_NE(start, std::string::npos) << bytes;
  EXPECT_LT(start, bytes.find("content_block_start"));
  EXPECT_NE(bytes.find(counters, start + 1), std::string::npos) << "and again in message_delta";
}

TEST_P(MessagesTest, BothKeyHeadersAreAcceptedAndNoVersionIsRequired) {  // decision 12
  const ApiKey key = Customer();
  const std::string body = Body(R"(,"x_sim":{"tokens":2})");
  const std::pair<const char*, HeaderList> forms[] = {
      {kPath, {{"x-api-key", key.secret}}},
      {kPath, {{"Authorization", "Bearer " + key.secret}, {"anthropic-version", "2026-10-21"}}},
      {kPath,
       {{"x-api-key", key.secret}, {"anthropic-version", "never"}, {"anthropic-beta", "a,b"}}},
      {"/v1/messages?beta=true", {{"x-api-key", key.secret}}},
      {kPath, {{"x-api-key", "dummy"}, {"Authorization", "Bearer " + key.secret}}},
  };
  for (const auto& [path, headers] : forms) {
    const HttpResponse answer = Http(cluster().port(), "POST", path, headers, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
  const ApiKey other = Customer();
  ExpectMessagesError(
      Http(cluster().port(), "POST", kPath,
           {{"x-api-key", key.secret}, {"Authorization", "Bearer " + other.secret}}, body),
      401, "invalid_api_key", "authentication_error");
  ExpectMessagesError(Http(cluster().port(), "POST", kPath, {}, body), 401, "invalid_api_key",
                      "authentication_error");
}

constexpr char kTools[] =
    R"(,"tools":[{"name":"get_weather","description":"d","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}},
      {"type":"web_search_20250305","name":"web_search","max_uses":5},
      {"name":"get_time","input_schema":{"type":"object","properties":{"zone":{"type":"string"}}}}])";

TEST_P(MessagesTest, ToolsRoundTrip) {
  const ApiKey key = Customer();
  const std::string calls =
      R"(,"x_sim":{"reasoning_tokens":2,"tool_calls":[{"name":"get_weather","arguments":{"city":"Oslo"}},{"name":"get_time","arguments":{"zone":"UTC"}}]})";
  const Checked stream = Stream(key, kTools + calls);
  EXPECT_EQ(stream.choices[0].finish, "tool_use");
  ASSERT_EQ(stream.choices[0].calls.size(), 2u);
  EXPECT_EQ(stream.choices[0].calls[0].name, "get_weather");
  EXPECT_EQ(stream.choices[0].calls[1].arguments, R"({"zone":"UTC"})");
  const HttpResponse answer = Send(key, kTools + calls);
  EXPECT_EQ(CheckMessagesBody(answer.body).choices[0].calls.size(), 2u) << answer.body;

  // The client returns the answer unchanged, and the results in the other order.
  const Json content = answer.json()["content"];
  const std::string first = content[1]["id"].str(), second = content[2]["id"].str();
  const std::string tag = NewTag();
  const Checked last =
      Whole(key, std::string(kTools) + R"(,"messages":[{"role":"user","content":"q"},)" +
                     R"({"role":"assistant","content":)" + content.Dump() + "}," +
                     R"({"role":"user","content":[{"type":"tool_result","tool_use_id":")" + second +
                     R"(","content":[{"type":"text","text":"noon"}]},)" +
                     R"({"type":"tool_result","tool_use_id":")" + first +
                     R"(","is_error":true,"content":"no sky"},{"type":"text","text":"well?"}]}],)" +
                     R"("x_sim":{"tokens":4,"tag":")" + tag + R"("})");
  EXPECT_EQ(last.choices[0].finish, "end_turn");
  const auto requests = EngineRequests(tag);
  ASSERT_EQ(requests.size(), 1u);
  const Json sent = Json::Parse(requests[0].body).value();
  EXPECT_EQ(sent["tools"].size(), 2u) << "tools hosted by the vendor are left out";
  const Json& messages = sent["messages"];
  ASSERT_EQ(messages.size(), 5u) << requests[0].body;
  EXPECT_EQ(messages[1]["tool_calls"][0]["id"].str(), first);
  EXPECT_EQ(messages[1]["tool_calls"][0]["function"]["arguments"].str(), R"({"city":"Oslo"})");
  EXPECT_FALSE(messages[1]["reasoning_content"].str().empty());
  EXPECT_EQ(messages[2]["tool_call_id"].str(), second);
  EXPECT_EQ(messages[2]["content"].str(), "noon");
  EXPECT_EQ(messages[3]["content"].str(), "Error: no sky");
  EXPECT_EQ(messages[4]["content"].str(), "well?");
}

TEST_P(MessagesTest, ToolChoiceReachesTheEngine) {
  const ApiKey key = Customer();
  EXPECT_EQ(Whole(key, std::string(kTools) + R"(,"tool_choice":{"type":"tool","name":"get_time"})")
                .choices[0]
                .calls[0]
                .name,
            "get_time");
  EXPECT_EQ(Stream(key, std::string(kTools) + R"(,"tool_choice":{"type":"any"})").choices[0].finish,
            "tool_use");
  EXPECT_TRUE(Whole(key, std::string(kTools) + R"(,"tool_choice":{"type":"none"})")
                  .choices[0]
                  .calls.empty());
}

TEST_P(MessagesTest, SettingsReachTheEngineInTheChatFormat) {
  const std::string tag = NewTag();
  Whole(
      Customer(),
      R"(,"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],)"
      R"("thinking":{"type":"disabled"},"output_config":{"effort":"low"},"stop_sequences":["zzz"],)"
      R"("top_k":7,"metadata":{"user_id":"u"},"service_tier":"auto","x_sim":{"tag":")" +
          tag + R"("})");
  const auto requests = EngineRequests(tag);
  ASSERT_EQ(requests.size(), 1u);
  const Json sent = Json::Parse(requests[0].body).value();
  EXPECT_EQ(sent["messages"][0]["content"].str(), "be brief");
  EXPECT_FALSE(sent["chat_template_kwargs"]["enable_thinking"].boolean(true));
  EXPECT_EQ(sent["reasoning_effort"].str(), "low");
  EXPECT_EQ(sent["stop"][0].str(), "zzz");
  EXPECT_EQ(sent["top_k"].integer(), 7);
  EXPECT_EQ(sent["max_tokens"].integer(), 5000);
  EXPECT_FALSE(sent.has("service_tier"));
  EXPECT_FALSE(sent.has("system"));
  for (const auto& header : requests[0].headers) {
    EXPECT_EQ(header.second.find("sk-"), std::string::npos)
        << "the caller's key must not reach the engine";
  }
}

TEST_P(MessagesTest, AStopSequenceIsReported) {
  const ApiKey key = Customer();
  const std::string chunks =
      R"(,"stop_sequences":["END"],"x_sim":{"raw_chunks":[{"choices":[{"index":0,"delta":{"role":"assistant","content":"a"}}]},{"choices":[{"index":0,"delta":{},"finish_reason":"stop","stop_reason":"END"}]},{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}},"data: [DONE]\n\n"]})";
  for (const Checked& checked : {Whole(key, chunks), Stream(key, chunks)}) {
    EXPECT_EQ(checked.choices[0].finish, "stop_sequence");
    EXPECT_EQ(checked.choices[0].stop_sequence, "END");
    EXPECT_EQ(checked.choices[0].text, "a");
  }
}

TEST_P(MessagesTest, MaxTokensEndsTheMessage) {
  const ApiKey key = Customer();
  // Inside the reasoning: the response has only the thinking block (docs/design/wire.md 6.2).
  const HttpResponse thought = cluster().Post(
      key, kPath,
      R"({"model":"sim/model","max_tokens":3,"messages":[{"role":"user","content":"q"}],"x_sim":{"tokens":4,"reasoning_tokens":6}})");
  EXPECT_EQ(thought.json()["content"].size(), 1u) << thought.body;
  EXPECT_EQ(thought.json()["content"][0]["type"].str(), "thinking");
  EXPECT_EQ(thought.json()["stop_reason"].str(), "max_tokens");
  // max_tokens: 0: no engine, no charge (decision 30).
  const ApiKey idle = Customer();
  for (const char* stream : {"false", "true"}) {
    const HttpResponse nothing = cluster().Post(
        idle, kPath,
        R"({"model":"sim/model","max_tokens":0,"messages":[{"role":"user","content":"q"}],"stream":)" +
            std::string(stream) + "}");
    const Checked checked =
        stream[0] == 't' ? CheckMessagesStream(nothing.body) : CheckMessagesBody(nothing.body);
    EXPECT_TRUE(checked.violations.empty()) << checked.violations[0] << nothing.body;
    EXPECT_EQ(checked.choices[0].finish, "max_tokens");
    EXPECT_GT(checked.usage->prompt, 0);
  }
  EXPECT_EQ(SpentOf(idle), 0);
}

TEST_P(MessagesTest, CreditExhaustedInMidStreamEndsWithMaxTokens) {  // decision 4
  const int64_t credit = Charge(80, 300);
  const ApiKey key = Customer(credit);
  const Checked stream = Stream(key, R"(,"x_sim":{"tokens":3000,"token_ms":1})");
  EXPECT_EQ(stream.ending, Ending::kWell);
  EXPECT_EQ(stream.choices[0].finish, "max_tokens");
  ASSERT_TRUE(stream.usage);
  EXPECT_GT(stream.usage->completion, 200);
  EXPECT_EQ(SpentOf(key, credit), Charge(stream.usage->prompt, stream.usage->completion));
}

TEST_P(MessagesTest, EngineFailuresEndTheStreamWithAnErrorEvent) {  // decision 23
  const char* const kScripts[] = {
      R"(,"x_sim":{"tokens":50,"cut_after_tokens":7,"token_ms":2})",
      R"(,"x_sim":{"tokens":50,"in_stream_error":"secret text","in_stream_error_after":7})",
  };
  for (const char* script : kScripts) {
    std::string bytes;
    const Checked broken = Stream(Customer(), script, &bytes);
    EXPECT_EQ(broken.ending, Ending::kError);
    EXPECT_EQ(broken.error_code, "server_error");
    EXPECT_EQ(bytes.find("message_stop"), std::string::npos);
    EXPECT_EQ(bytes.find("secret"), std::string::npos);
  }
}

TEST_P(MessagesTest, ErrorsBeforeTheStreamUseTheMessagesEnvelope) {
  const ApiKey key = Customer();
  for (const char* stream : {"", ",\"stream\":true"}) {
    const std::string more = stream;
    ExpectMessagesError(Send(key, more + R"(,"x_sim":{"status":502})"), 502, "server_error",
                        "api_error");
    ExpectMessagesError(Send(key, more + R"(,"x_sim":{"status":503})"), 503, "service_unavailable",
                        "overloaded_error");
    ExpectMessagesError(Send(key, more, "sim/none"), 404, "model_unavailable", "not_found_error");
    ExpectMessagesError(Send(key, more + R"(,"temperature":1.5)"), 400, "bad_request",
                        "invalid_request_error", "temperature");
    ExpectMessagesError(Send(key, more + R"(,"tools":[{"type":"bash_20250124","name":"bash"}])"),
                        400, "bad_request", "invalid_request_error", "tools");
    ExpectMessagesError(
        Send(
            key,
            more +
                R"(,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}])"),
        400, "bad_request", "invalid_request_error", "messages");
  }
  ExpectMessagesError(
      cluster().Post(key, kPath,
                     R"({"model":"sim/model","messages":[{"role":"user","content":"q"}]})"),
      400, "bad_request", "invalid_request_error", "max_tokens");
  ExpectMessagesError(Send(Customer(0), ""), 402, "insufficient_credits", "permission_error");
  EXPECT_EQ(SpentOf(key), 0);
}

TEST_P(MessagesTest, ErrorsEchoTheRequestId) {  // docs/contract.md "Envelopes"
  const ApiKey key = Customer();
  HeaderList headers = key.headers();
  HttpResponse answer = Http(cluster().port(), "POST", kPath, headers, "{}");
  EXPECT_FALSE(answer.json().has("request_id")) << answer.body;
  headers.emplace_back("X-Request-Id", "mine-1");
  answer = Http(cluster().port(), "POST", kPath, headers, "{}");
  EXPECT_EQ(answer.json()["request_id"].str(), "mine-1") << answer.body;
  EXPECT_EQ(answer.header("request-id"), "mine-1");
}

TEST_P(MessagesTest, ImagesNeedAVisionModel) {  // docs/contract.md, general rule 4
  const ApiKey key = Customer();
  const std::string tag = NewTag();
  const std::string image =
      R"(,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},{"type":"text","text":"what?"}]}],"x_sim":{"tag":")" +
      tag + R"("})";
  ExpectMessagesError(Send(key, image), 400, "bad_request", "invalid_request_error", "messages");
  EXPECT_EQ(Send(key, image, "sim/vision").status, 200);
  const auto requests = EngineRequests(tag);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_NE(requests[0].body.find("data:image/png;base64,AA=="), std::string::npos);
}

// While the engine is silent, pings keep the stream alive, also before its first event (decision
// 25).
TEST(MessagesPing, IsSentWhileTheEngineIsSilent) {
  EngineSim engine(EngineSimOptions{});
  std::string failure;
  ASSERT_TRUE(engine.Start(&failure)) << failure;
  ClusterOptions options;
  options.keep_alive_seconds = 1;
  options.catalog = DefaultCatalog({engine.base_url()});
  Cluster cluster(options);
  ASSERT_EQ(cluster.Start(), "");
  const ApiKey key = cluster.NewCustomer(kUsd);
  const HttpResponse answer = cluster.Post(
      key, kPath,
      R"({"model":"sim/model","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"q"}],"x_sim":{"tokens":2,"late_headers":true,"delay_ms":2500}})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body.rfind("event: ping\ndata: {\"type\":\"ping\"}\n\n", 0), 0u) << answer.body;
  const Checked checked = CheckMessagesStream(answer.body);
  EXPECT_TRUE(checked.violations.empty()) << checked.violations[0];
  EXPECT_EQ(checked.choices[0].finish, "end_turn");
  EXPECT_EQ(cluster.StopOrderly(), "");
}

}  // namespace
}  // namespace tollgate::test
