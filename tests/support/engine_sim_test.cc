// The simulator follows the rules that other tests rely on.
#include "tests/support/engine_sim.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "tests/support/http.h"
#include "tests/support/sim_text.h"

namespace tollgate::test {
namespace {

constexpr char kChat[] = "/v1/chat/completions";

std::string Body(const std::string& more = "", const std::string& text = "hello there") {
  return R"({"model":"sim/model","messages":[{"role":"user","content":)" + JsonQuoted(text) + "}]" +
         more + "}";
}

class EngineSimTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(sim_.Start()); }
  HttpResponse Post(const std::string& path, const std::string& body) {
    return Http(sim_.port(), "POST", path, {}, body);
  }
  SseStream Stream(const std::string& more) {
    return HttpStream(sim_.port(), kChat, {}, Body(",\"stream\":true" + more));
  }
  EngineSim sim_;
};

TEST_F(EngineSimTest, TheSameRequestGetsTheSameAnswerStreamedOrNot) {
  const Json whole = Post(kChat, Body()).json();
  const SseStream stream = Stream("");
  EXPECT_FALSE(whole["choices"][0]["message"]["content"].str().empty());
  EXPECT_EQ(stream.Text(), whole["choices"][0]["message"]["content"].str());
  EXPECT_TRUE(stream.done());
  EXPECT_TRUE(stream.complete);
  EXPECT_NE(
      Post(kChat, Body("", "another question")).json()["choices"][0]["message"]["content"].str(),
      stream.Text());
}

TEST_F(EngineSimTest, UsageAgreesWithTokenizeAndWithTheCountOfTheText) {
  const Json answer = Post(kChat, Body(R"(,"max_tokens":20)")).json();
  EXPECT_EQ(answer["usage"]["completion_tokens"].integer(), 20);
  EXPECT_EQ(answer["choices"][0]["finish_reason"].str(), "length");
  EXPECT_EQ(CountTokens(answer["choices"][0]["message"]["content"].str()), 20);
  const Json count = Post("/tokenize", Body()).json();
  EXPECT_EQ(count["count"].integer(), answer["usage"]["prompt_tokens"].integer());
  EXPECT_EQ(count["tokens"].size(), static_cast<size_t>(count["count"].integer()));
}

TEST_F(EngineSimTest, ContinuousUsageGrowsByOnePerTokenAndTheLastChunkHasNoChoices) {
  const SseStream good = Stream(
      R"(,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"x_sim":{"tokens":5})");
  int64_t last = 0;
  for (const SseEvent& event : good.events) {
    if (event.data == "[DONE]") continue;
    const int64_t now = event.json()["usage"]["completion_tokens"].integer(-1);
    EXPECT_GE(now, last);
    EXPECT_LE(now, last + 1);
    last = now;
  }
  EXPECT_EQ(last, 5);
  EXPECT_EQ(good.events[good.events.size() - 2].json()["choices"].size(), 0u);
}

TEST_F(EngineSimTest, ReasoningComesFirstInItsOwnField) {
  const SseStream stream = Stream(R"(,"x_sim":{"tokens":4,"reasoning_tokens":3})");
  EXPECT_EQ(CountTokens(stream.Text("reasoning")), 3);
  EXPECT_EQ(CountTokens(stream.Text()), 4);
  EXPECT_EQ(sim_.requests().back().tokens_generated, 7);
}

constexpr char kTools[] =
    R"(,"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}},
       {"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{}}}}])";

TEST_F(EngineSimTest, ToolsNamedInTheQuestionAreCalledInParallel) {
  const Json answer = Post(kChat, Body(kTools, "use get_weather and get_time")).json();
  const Json& calls = answer["choices"][0]["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0]["function"]["name"].str(), "get_weather");
  const auto arguments = Json::Parse(calls[0]["function"]["arguments"].str());
  ASSERT_TRUE(arguments);
  EXPECT_TRUE((*arguments)["city"].is_string());
  EXPECT_TRUE((*arguments)["days"].is_number());
  EXPECT_EQ(answer["choices"][0]["finish_reason"].str(), "tool_calls");
  EXPECT_TRUE(answer["choices"][0]["message"]["content"].is_null());
}

TEST_F(EngineSimTest, AScriptedTextCallsNoToolThatTheScriptDoesNotCall) {
  const Json answer =
      Post(kChat, Body(std::string(kTools) + R"(,"x_sim":{"text":"all"})", "use get_weather"))
          .json();
  EXPECT_EQ(answer["choices"][0]["message"]["content"].str(), "all");
  EXPECT_EQ(answer["choices"][0]["message"]["tool_calls"].size(), 0u);
}

TEST_F(EngineSimTest, StreamedToolCallHasItsNameOnceAndItsArgumentsJoinToJson) {
  const SseStream stream = HttpStream(
      sim_.port(), kChat, {},
      Body(
          std::string(
              R"(,"stream":true,"tool_choice":{"type":"function","function":{"name":"get_weather"}})") +
          kTools));
  std::string arguments;
  int names = 0;
  for (const SseEvent& event : stream.events) {
    const Json call = event.json()["choices"][0]["delta"]["tool_calls"][0];
    names += call["function"].has("name") ? 1 : 0;
    arguments += call["function"]["arguments"].str();
  }
  EXPECT_EQ(names, 1);
  EXPECT_TRUE(Json::Parse(arguments)) << arguments;
  EXPECT_EQ(stream.FinishReason(), "stop") << "vLLM sends stop after a forced call";
}

TEST_F(EngineSimTest, StructuredOutputIsAnInstanceOfTheSchema) {
  const Json answer =
      Post(kChat,
           Body(R"(,"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":{
      "type":"object","properties":{"name":{"type":"string"},"colour":{"enum":["red","blue"]},"tags":{"type":"array","items":{"type":"integer"}}}}}})"))
          .json();
  const auto value = Json::Parse(answer["choices"][0]["message"]["content"].str());
  ASSERT_TRUE(value);
  EXPECT_TRUE((*value)["colour"].str() == "red" || (*value)["colour"].str() == "blue");
  EXPECT_TRUE((*value)["tags"][0].is_number());
}

TEST_F(EngineSimTest, NGivesIndependentChoicesAndAllAreCounted) {
  const SseStream stream =
      Stream(R"(,"n":3,"x_sim":{"tokens":4},"stream_options":{"include_usage":true})");
  EXPECT_EQ(stream.Usage()["completion_tokens"].integer(), 12);
  EXPECT_NE(stream.Text("content", 0), stream.Text("content", 2));
  EXPECT_EQ(stream.FinishReason(2), "stop");
}

TEST_F(EngineSimTest, StopStringCutsTheText) {
  const std::string text =
      Post(kChat, Body(R"(,"x_sim":{"text":"one two three four"},"stop":["three"])"))
          .json()["choices"][0]["message"]["content"]
          .str();
  EXPECT_EQ(text, "one two ");
}

TEST_F(EngineSimTest, ContextOverflowIsRefusedWithTheTextOfVllm) {
  const HttpResponse answer = Post(kChat, Body(R"(,"max_tokens":140000)"));
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("maximum context length is 131072 tokens"), std::string::npos);
  EXPECT_EQ(answer.json()["error"]["param"].str(), "input_tokens");
}

TEST_F(EngineSimTest, StatusBodyAndHeadersCanBeScripted) {
  const HttpResponse answer = Post(
      kChat, Body(R"(,"x_sim":{"status":429,"error_body":"busy","headers":{"Retry-After":"7"}})"));
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.body, "busy");
  EXPECT_EQ(answer.header("retry-after"), "7");
}

TEST_F(EngineSimTest, CutAfterTokensClosesWithoutTheLastChunk) {
  const SseStream stream = Stream(R"(,"x_sim":{"tokens":9,"cut_after_tokens":3})");
  EXPECT_EQ(CountTokens(stream.Text()), 3);
  EXPECT_FALSE(stream.complete);
  EXPECT_TRUE(sim_.requests().back().cut);
  EXPECT_EQ(sim_.requests().back().tokens_generated, 3);
}

TEST_F(EngineSimTest, AbortIsRecordedWithItsTime) {
  {
    HttpConnection connection(sim_.port());
    connection.SendRequest("POST", kChat, {},
                           Body(R"(,"stream":true,"x_sim":{"tokens":100,"hang_after_tokens":2})"));
    connection.ReadHead();
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(connection.NextEvent());
    EXPECT_EQ(sim_.running(), 1);
  }
  ASSERT_TRUE(sim_.WaitFor([](const EngineSim& sim) { return sim.running() == 0; }));
  const SimRequest request = sim_.requests().back();
  EXPECT_TRUE(request.aborted);
  EXPECT_GT(request.ended_us, request.first_token_us);
  EXPECT_EQ(request.tokens_generated, 2);
}

TEST_F(EngineSimTest, PacingKeepsTheRate) {
  const SseStream stream = Stream(R"(,"x_sim":{"tokens":11,"token_ms":10,"delay_ms":30})");
  const SimRequest request = sim_.requests().back();
  EXPECT_GE(request.first_token_us - request.received_us, 30'000);
  EXPECT_GE(request.ended_us - request.received_us, 130'000);
  EXPECT_TRUE(stream.done());
}

TEST_F(EngineSimTest, SlowReaderPausesTheGeneration) {
  HttpConnection::SetReceiveBuffer(4096);
  HttpConnection connection(sim_.port());
  HttpConnection::SetReceiveBuffer(0);
  connection.SendRequest("POST", kChat, {}, Body(R"(,"stream":true,"x_sim":{"tokens":100000})"));
  connection.ReadHead();
  ASSERT_TRUE(
      sim_.WaitFor([](const EngineSim& sim) { return sim.totals().tokens_generated > 100; }));
  int64_t before = -1;
  // Grows until the socket buffers are full, then stops.
  ASSERT_TRUE(sim_.WaitFor([&before](const EngineSim& sim) {
    const int64_t now = sim.totals().tokens_generated;
    const bool still = now == before;
    before = now;
    return still;
  }));
  EXPECT_LT(before, 60'000);
  int64_t events = 0;
  while (connection.NextEvent()) ++events;
  EXPECT_TRUE(connection.ended_properly());
  EXPECT_EQ(events, 100'000 + 3);
}

TEST_F(EngineSimTest, KeepAliveServesManyRequestsAndHealthCanBeSwitched) {
  HttpConnection connection(sim_.port());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(connection.Request("POST", kChat, {}, Body()).status, 200);
  EXPECT_EQ(connection.Request("GET", "/health").status, 200);
  sim_.SetHealthy(false);
  EXPECT_EQ(connection.Request("GET", "/health").status, 503);
  EXPECT_NE(connection.Request("GET", "/metrics").body.find("vllm:num_requests_running"),
            std::string::npos);
}

TEST_F(EngineSimTest, StopsAndStartsOnTheSamePort) {
  const int port = sim_.port();
  sim_.Stop();
  EXPECT_EQ(Http(port, "GET", "/health").status, 0);
  ASSERT_TRUE(sim_.Start());
  EXPECT_EQ(sim_.port(), port);
  EXPECT_EQ(Http(port, "GET", "/health").status, 200);
  sim_.SetListening(false);
  EXPECT_EQ(Http(port, "GET", "/health").status, 0);
  sim_.SetListening(true);
  EXPECT_EQ(Http(port, "GET", "/health").status, 200);
}

TEST_F(EngineSimTest, QueuedScriptsGoToChatRequestsThatOfferTools) {
  const std::string tools =
      R"(,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}])";
  EXPECT_EQ(Post("/sim/queue", R"([{"text":"first"},{"text":"second"},{"text":"third"}])")
                .json()["left"]
                .integer(-1),
            0);
  const auto text = [](const HttpResponse& answer) {
    return answer.json()["choices"][0]["message"]["content"].str();
  };
  EXPECT_NE(text(Post(kChat, Body())), "first");
  EXPECT_EQ(text(Post(kChat, Body(tools))), "first");
  EXPECT_EQ(text(Post(kChat, Body(tools))), "second");
  EXPECT_EQ(Post("/sim/queue", "[]").json()["left"].integer(-1), 1);
  EXPECT_NE(text(Post(kChat, Body(tools))), "third");
}

TEST_F(EngineSimTest, EachTokenOfAMarkedAnswerNamesEngineRequestTagAndPlace) {
  const std::string script =
      R"(,"x_sim":{"marked":true,"tokens":2,"reasoning_tokens":1,"tag":"t"})";
  EXPECT_EQ(Post(kChat, Body(script)).json()["choices"][0]["message"]["content"].str(),
            "[sim.1.t.1][sim.1.t.2]");
  const SseStream stream = Stream(script);
  EXPECT_EQ(stream.Text("reasoning"), "[sim.2.t.0]");
  EXPECT_EQ(stream.Text(), "[sim.2.t.1][sim.2.t.2]");
  EXPECT_EQ(stream.events.size(), 6u) << "one event per token, a role, the finish and the end";
}

TEST_F(EngineSimTest, DrawnFaultsStandAboveTheScriptOfARequestUntilTheyAreTakenBack) {
  const std::string own = R"(,"x_sim":{"tag":"t","tokens":9})";
  Post("/sim/faults",
       R"({"percent":100,"seed":1,"scripts":[{"status":500,"error_body":"bad {mark}"}]})");
  const HttpResponse refused = Post(kChat, Body(own));
  EXPECT_EQ(refused.status, 500);
  EXPECT_EQ(refused.body, "bad sim.1.t");
  Post("/sim/faults", R"({"percent":0})");
  EXPECT_EQ(Post(kChat, Body(own)).status, 200);
}

TEST_F(EngineSimTest, ARawResponseIsSentAsItIs) {
  HttpConnection connection(sim_.port(), 5'000);
  connection.SendRequest(
      "POST", kChat, {},
      Body(R"(,"x_sim":{"tag":"t","raw_response":"HTTP/1.1 418 {mark}\r\ncontent-le"})"));
  EXPECT_EQ(connection.ReadHead().status, 0);
  EXPECT_EQ(connection.error(), "closed");
  // After two tokens of a stream, the connection is kept.
  HttpConnection stream(sim_.port(), 5'000);
  stream.SendRequest(
      "POST", kChat, {},
      Body(R"(,"stream":true,"x_sim":{"marked":true,"tokens":9,"tag":"t","raw_after_tokens":2,)"
           R"("raw_response":"0\r\n\r\n","raw_end":"keep"})"));
  EXPECT_EQ(stream.ReadHead().status, 200);
  std::string bytes;
  for (std::string more; !(more = stream.ReadSome()).empty();) bytes += more;
  EXPECT_TRUE(stream.ended_properly());
  EXPECT_NE(bytes.find("[sim.2.t.1]"), std::string::npos);
  EXPECT_EQ(bytes.find("[sim.2.t.2]"), std::string::npos);
  EXPECT_EQ(stream.Request("GET", "/health").status, 200);
}

TEST_F(EngineSimTest, BytesBehindAnAnswerFollowItAtOnce) {
  HttpConnection connection(sim_.port(), 5'000);
  connection.SendRequest(
      "POST", kChat, {},
      Body(R"(,"x_sim":{"behind":"HTTP/1.1 418 x\r\ncontent-length: 0\r\n\r\n"})"));
  EXPECT_EQ(connection.ReadResponse().status, 200);
  EXPECT_EQ(connection.ReadResponse().status, 418);
}

TEST_F(EngineSimTest, HealthChecksAnswerAsTheScriptSays) {
  Post("/sim/script", R"({"health_status":401})");
  EXPECT_EQ(Http(sim_.port(), "GET", "/health").status, 401);
}

TEST(EngineSimJournalTest, TellsEachRequestBeforeItsAnswer) {
  const std::string file = ::testing::TempDir() + "engine_sim_journal";
  std::remove(file.c_str());
  EngineSimOptions options;
  options.name = "e1";
  options.journal = file;
  EngineSim sim(options);
  ASSERT_TRUE(sim.Start());
  Http(sim.port(), "POST", kChat, {}, Body(R"(,"x_sim":{"tag":"t","tokens":7,"status":500})"));
  Http(sim.port(), "POST", kChat, {}, Body(R"(,"x_sim":{"tag":"u","tokens":7})"));
  std::ifstream in(file);
  std::string first, second, third;
  std::getline(in, first);
  std::getline(in, second);
  EXPECT_FALSE(std::getline(in, third));
  EXPECT_NE(first.find(R"("engine":"e1","number":1,"tag":"t")"), std::string::npos) << first;
  EXPECT_NE(second.find(R"("number":2,"tag":"u")"), std::string::npos) << second;
  EXPECT_NE(second.find(R"("tokens":7)"), std::string::npos) << second;
}

}  // namespace
}  // namespace tollgate::test
