// Engine failures: the response and the charge. See docs/design/wire.md 10.1, decisions 7,
// 22 to 25.
#include <unistd.h>

#include <chrono>
#include <sstream>

#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

class FaultsTest : public SystemTest {};
INSTANTIATE_TEST_SUITE_P(Systems, FaultsTest, kSystems,
                         [](const auto& info) { return info.param; });

struct Row {
  const char* script;
  int status;
  const char* code;
  const char* type;
};

TEST_P(FaultsTest, EngineErrorsMapToTheErrorCatalogAndCostNothing) {
  const Row rows[] = {
      {R"({"status":500})", 500, "server_error", "server_error"},
      {R"({"status":502})", 502, "server_error", "server_error"},
      {R"({"status":504})", 502, "server_error", "server_error"},
      {R"({"status":503})", 503, "service_unavailable", "service_unavailable"},
      {R"({"status":429,"headers":{"Retry-After":"2"}})", 429, "rate_limited", "rate_limit_error"},
      {R"({"status":400,"error_body":{"error":{"message":"secret engine text","code":400}}})", 400,
       "bad_request", "invalid_request_error"},
      {R"({"status":422,"error_body":{"detail":"nope"}})", 400, "bad_request",
       "invalid_request_error"},
      {R"({"status":401,"error_body":{"error":"Unauthorized"}})", 502, "service_unavailable",
       "service_unavailable"},
      {R"({"status":403})", 502, "service_unavailable", "service_unavailable"},
      {R"({"status":404})", 502, "service_unavailable", "service_unavailable"},
      {R"({"cut_before_headers":true})", 502, "service_unavailable", "service_unavailable"},
  };
  for (const Row& row : rows) {
    for (const char* stream : {"", ",\"stream\":true"}) {
      SCOPED_TRACE(std::string(row.script) + stream);
      const ApiKey key = Customer();
      const HttpResponse answer = Chat(key, std::string(stream) + ",\"x_sim\":" + row.script);
      ExpectError(answer, row.status, row.code, row.type);
      EXPECT_EQ(answer.body.find("secret engine text"), std::string::npos)
          << "engine text must not reach the caller";
      if (row.status == 429) EXPECT_EQ(answer.header("retry-after"), "2");
      EXPECT_EQ(SpentOf(key), 0);
    }
  }
}

// docs/adr/0016: one bound for all event loops of a gateway; each call has a connection of its own.
TEST_P(FaultsTest, RefusalsOfAKeyAreBoundedOverAllConnections) {
  constexpr int64_t kBurst = 60;
  const ApiKey key = Customer();
  const auto start = std::chrono::steady_clock::now();
  int64_t refused = 0;
  for (;;) {
    const HttpResponse answer = Chat(key, R"(,"x_sim":{"status":400})");
    const int64_t seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start)
            .count();
    if (answer.status == 429) break;
    ASSERT_EQ(answer.status, 400) << answer.body;
    ASSERT_LE(++refused, kBurst + seconds + 1);
  }
  EXPECT_GE(refused, kBurst);
  EXPECT_EQ(SpentOf(key), 0);
}

TEST_P(FaultsTest, ContextLengthIsRecognizedWithAnyStatusAndNamesTheNumbers) {
  const ApiKey key = Customer();
  const char* const kScripts[] = {
      R"({"status":400,"error_body":{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 100 output tokens and your prompt contains at least 5000 input tokens, for a total of at least 5100 tokens.","type":"BadRequestError","param":"input_tokens","code":400}}})",
      R"({"status":500,"error_body":{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","code":500}})",
      R"({"raw_chunks":["data: {\"error\":{\"message\":\"This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.\",\"code\":400}}\n\n","data: [DONE]\n\n"]})",
  };
  for (const char* script : kScripts) {
    SCOPED_TRACE(script);
    const HttpResponse answer = Chat(key, std::string(",\"x_sim\":") + script);
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(answer.json()["error"]["code"].str(), "context_length_exceeded");
    EXPECT_EQ(answer.json()["error"]["type"].str(), "invalid_request_error");
    EXPECT_NE(answer.body.find("maximum context length is 4096 tokens"), std::string::npos)
        << answer.body;
  }
  const HttpResponse ours = Chat(key, ",\"max_tokens\":131072");
  EXPECT_EQ(ours.status, 400) << ours.body;
  EXPECT_EQ(ours.json()["error"]["code"].str(), "context_length_exceeded");
  EXPECT_EQ(SpentOf(key), 0);
}

// Decision 32: each family gets the text that its agents look for, with real numbers only.
TEST_P(FaultsTest, ContextOverflowHasTheTextOfEachFamily) {
  struct Case {
    const char* engine;  // message of its error
    const char* messages;
    const char* chat;
    const char* chat_param;
  };
  const Case cases[] = {
      {"The input (5000 tokens) is longer than the model's context length (4096 tokens).",
       "prompt is too long: 5000 tokens > 4096 maximum",
       "This model's maximum context length is 4096 tokens. However, your prompt has 5000 tokens.",
       "messages"},
      {"This model's maximum context length is 4096 tokens. However, you requested 100 output "
       "tokens and your prompt contains at least 4097 input tokens, for a total of at least 4197 "
       "tokens.",
       "prompt is too long: 4097 tokens > 4096 maximum", "at least 4097 in the prompt", "messages"},
      {"This model's maximum context length is 4096 tokens. However, you requested 4100 tokens "
       "(4000 in the messages, 100 in the completion).",
       "input length and `max_tokens` exceed context limit: 4000 + 100 > 4096",
       "you requested 4100 tokens (4000 in the prompt, 100 for the completion)", "max_tokens"},
      // A lower bound in a sum would make a caller compute the wrong max_tokens.
      {"This model's maximum context length is 4096 tokens. However, you requested 100 output "
       "tokens and your prompt contains at least 3997 input tokens, for a total of at least 4097 "
       "tokens.",
       "maximum context length is 4096 tokens. However, you requested at least 4097 tokens",
       "maximum context length is 4096 tokens. However, you requested at least 4097 tokens", ""},
  };
  const ApiKey key = Customer();
  for (const Case& one : cases) {
    for (const bool in_stream : {false, true}) {
      SCOPED_TRACE(std::string(one.messages) + (in_stream ? ", in the stream" : ""));
      Json error = Json::Object();
      error.Set("message", one.engine);
      Json script = Json::Object();
      Json body = Json::Object();
      body.Set("error", error);
      if (in_stream) {
        script.Set("raw_chunks", Json::Array().Add("data: " + body.Dump() + "\n\n"));
      } else {
        script.Set("status", 400).Set("error_body", body);
      }
      Json message = Json::Object();
      message.Set("role", "user").Set("content", "x_sim:" + script.Dump());
      Json request = Json::Object();
      request.Set("model", "sim/model").Set("max_tokens", 100).Set("stream", in_stream);
      request.Set("messages", Json::Array().Add(message));
      const HttpResponse chat = cluster().Post(key, kChat, request.Dump());
      ExpectError(chat, 400, "context_length_exceeded", "invalid_request_error", one.chat_param);
      EXPECT_NE(chat.json()["error"]["message"].str().find(one.chat), std::string::npos)
          << chat.body;
      const HttpResponse answer = cluster().Post(key, "/v1/messages", request.Dump());
      EXPECT_EQ(answer.status, 400) << answer.body;
      EXPECT_EQ(answer.json()["error"]["type"].str(), "invalid_request_error");
      EXPECT_EQ(answer.json()["error"]["code"].str(), "context_length_exceeded");
      EXPECT_NE(answer.json()["error"]["message"].str().find(one.messages), std::string::npos)
          << answer.body;
    }
  }
  // The simulator, like vLLM, reports a lower bound of the prompt; its tokenizer gives the exact
  // size.
  std::string words;
  for (int i = 0; i < 131'000; ++i) words += "word ";
  const std::string prompt =
      R"("messages":[{"role":"user","content":")" + words + R"("}],"model":"sim/model"})";
  const HttpResponse sum = cluster().Post(key, "/v1/messages", R"({"max_tokens":5000,)" + prompt);
  EXPECT_EQ(sum.json()["error"]["message"].str(),
            "input length and `max_tokens` exceed context limit: 131007 + 5000 > 131072");
  EXPECT_EQ(SpentOf(key), 0);
}

TEST_P(FaultsTest, ModelWithUnreachableEnginesIsRetryable) {
  const HttpResponse answer = Chat(Customer(), "", "sim/empty");
  EXPECT_TRUE(answer.status == 502 || answer.status == 503) << answer.status << answer.body;
  const std::string code = answer.json()["error"]["code"].str();
  EXPECT_TRUE(code == "service_unavailable" || code == "model_unavailable") << answer.body;
}

TEST_P(FaultsTest, BeforeTheFirstByteAnotherEngineIsTriedAndBilledOnce) {
  engine(0).SetDefaultScript(R"({"cut_before_headers":true})");
  const ApiKey key = Customer();
  int64_t expected = 0;
  for (int i = 0; i < 6; ++i) {
    const HttpResponse answer = Chat(key);
    ASSERT_EQ(answer.status, 200) << answer.body;
    const Json usage = answer.json()["usage"];
    expected += Charge(usage["prompt_tokens"].integer(), usage["completion_tokens"].integer());
  }
  EXPECT_EQ(SpentOf(key), expected);
}

TEST_P(FaultsTest, FailureInMidStreamSendsAnErrorEventAndChargesDeliveredOutput) {
  const char* const kScripts[] = {
      R"({"tokens":50,"cut_after_tokens":7,"token_ms":2})",
      R"({"tokens":50,"in_stream_error":"CUDA error of secret engine","in_stream_error_after":7,"token_ms":2})",
  };
  for (const char* script : kScripts) {
    SCOPED_TRACE(script);
    const ApiKey key = Customer();
    const SseStream stream = ChatStream(key, std::string(",\"x_sim\":") + script);
    ASSERT_EQ(stream.head.status, 200) << stream.head.body;
    EXPECT_FALSE(stream.done()) << "no [DONE] after a failure";
    const Json error = stream.events.back().json()["error"];
    EXPECT_EQ(error["code"].str(), "server_error") << stream.events.back().data;
    EXPECT_EQ(stream.events.back().data.find("secret"), std::string::npos);
    int64_t tokens = 0;
    for (const SseEvent& event : stream.events) {
      const Json chunk = event.json();
      tokens += chunk["choices"][0]["delta"]["content"].str().empty() ? 0 : 1;
    }
    EXPECT_EQ(tokens, 7);
    const int64_t spent = SpentOf(key);
    const Json usage = Chat(key, R"(,"x_sim":{"tokens":1})").json()["usage"];
    EXPECT_EQ(spent, Charge(usage["prompt_tokens"].integer(), 7));
  }
}

TEST_P(FaultsTest, BrokenEngineStreamIsAnErrorStatusWithoutStreaming) {
  const HttpResponse answer = Chat(Customer(), R"(,"x_sim":{"tokens":50,"cut_after_tokens":7})");
  EXPECT_EQ(answer.status, 502) << answer.body;
  EXPECT_EQ(answer.json()["error"]["code"].str(), "server_error");
}

int64_t RssOf(const std::vector<pid_t>& pids) {
  int64_t pages = 0;
  for (const pid_t pid : pids) {
    std::istringstream fields(ReadFile("/proc/" + std::to_string(pid) + "/statm"));
    int64_t size = 0;
    int64_t resident = 0;
    fields >> size >> resident;
    pages += resident;
  }
  return pages * sysconf(_SC_PAGESIZE);
}

// Sanitizers delay the reuse of freed memory.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr int64_t kMoreMemory = 512 << 20;
#else
constexpr int64_t kMoreMemory = 16 << 20;
#endif

TEST_P(FaultsTest, BackpressureOfASlowReaderReachesTheEngineAndBoundsMemory) {
  const ApiKey key = Customer();
  ASSERT_EQ(Chat(key).status, 200);
  const int64_t before = RssOf(cluster().pids());
  const int64_t generated_before =
      engine(0).totals().tokens_generated + engine(1).totals().tokens_generated;
  HttpConnection::SetReceiveBuffer(4096);
  HttpConnection connection(cluster().port());
  HttpConnection::SetReceiveBuffer(0);
  connection.SendRequest("POST", kChat, key.headers(),
                         ChatBody(R"(,"stream":true,"x_sim":{"tokens":60000})"));
  ASSERT_EQ(connection.ReadHead().status, 200);
  int64_t last = -1;
  ASSERT_TRUE(WaitUntil(
      [&] {
        const int64_t now =
            engine(0).totals().tokens_generated + engine(1).totals().tokens_generated;
        const bool still = now == last && now > generated_before;
        last = now;
        return still;
      },
      15'000, 300));
  EXPECT_LT(last - generated_before, 55'000) << "the engine must be slowed down";
  EXPECT_LT(RssOf(cluster().pids()) - before, kMoreMemory);
  int64_t tokens = 0;
  bool done = false;
  while (auto event = connection.NextEvent()) {
    done = event->data == "[DONE]";
    tokens += event->data.find("\"content\":\"") != std::string::npos ? 1 : 0;
  }
  EXPECT_TRUE(done) << connection.error();
  EXPECT_GE(tokens, 60'000);
}

TEST_P(FaultsTest, StreamSurvivesALateFirstToken) {
  const SseStream stream = ChatStream(Customer(), R"(,"x_sim":{"delay_ms":1500,"tokens":3})");
  EXPECT_EQ(stream.head.status, 200);
  EXPECT_TRUE(stream.done());
}

}  // namespace
}  // namespace tollgate::test
