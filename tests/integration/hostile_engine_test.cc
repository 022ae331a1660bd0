// Engines are not trusted: each answer ends legally, is settled once, and holds bounded memory; a
// caller cannot reach an engine's templates, other hosts, or another caller's cache through the
// gateway. H67, H75, decisions 7, 22, 23, 45.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr int64_t kCredit = 1'000'000'000;
constexpr char kChat[] = "/v1/chat/completions";

std::string Chunk(const std::string& choice) {
  return R"({"choices":[{"index":0,)" + choice + "}]}";
}
std::string Text(const std::string& text) {
  return Chunk(R"("delta":{"content":")" + text + "\"}");
}
std::string Calls(const std::string& items) {
  return Chunk(R"("delta":{"tool_calls":[)" + items + "]}");
}
// A script: these chunks, of which the last one is repeated endlessly.
std::string Endless(const std::string& chunks, const std::string& more = "") {
  return R"({"repeat_last":-1,"raw_chunks":[)" + chunks + "]" + more + "}";
}

class HostileEngine : public ::testing::TestWithParam<bool> {
 protected:
  void Start(ClusterOptions options) {
    ASSERT_TRUE(sim_.Start());
    options.all_in_one = GetParam();
    if (options.catalog.empty()) options.catalog = DefaultCatalog({sim_.base_url()});
    cluster_ = std::make_unique<Cluster>(std::move(options));
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (!cluster_) return;
    const LedgerCheck check = cluster_->VerifyLedger();
    EXPECT_TRUE(check.ok) << check.violations;
    EXPECT_EQ(cluster_->Crashes(), "");
    EXPECT_EQ(cluster_->StopOrderly(), "");
  }
  HttpResponse Post(const ApiKey& key, const std::string& path, const std::string& body) {
    return cluster_->Post(key, path, body);
  }
  static std::string Body(const std::string& script, bool stream) {
    return R"({"model":"sim/model","messages":[{"role":"user","content":"hi"}],"x_sim":)" + script +
           (stream ? R"(,"stream":true})" : "}");
  }
  // Credit spent, after waiting until nothing is held.
  int64_t SpentOf(const ApiKey& key) {
    EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id)) << "a hold was not released";
    const auto balance = cluster_->Balance(key.workspace_id);
    if (!balance) return -1;
    EXPECT_EQ(balance->open_holds, 0);
    EXPECT_EQ(balance->month_spent, kCredit - balance->available);
    return kCredit - balance->available;
  }
  std::string Metrics() {
    const std::string router = GetParam() ? "allinone" : "inference-router";
    return Http(cluster_->admin_port(router), "GET", "/metrics").body;
  }
  // The last body that the engine received.
  Json LastBody() { return Json::Parse(sim_.requests().back().body).value_or(Json()); }

  EngineSim sim_;
  std::unique_ptr<Cluster> cluster_;
};

INSTANTIATE_TEST_SUITE_P(Systems, HostileEngine, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "allinone" : "tcp"; });

struct Row {
  std::string what;
  std::string script;
  bool after_output;
};

std::vector<Row> HostileAnswers() {
  const std::string drip = R"(,"token_ms":50)";
  const std::string json = R"(,"raw_type":"application/json")";
  std::string many;
  for (int i = 0; i < 300; ++i) {
    many += std::string(i > 0 ? "," : "") + R"({"index":)" + std::to_string(i) +
            R"(,"id":"a","function":{"name":"f","arguments":"{}"}})";
  }
  return {
      {"comments", Endless(R"(": x\n\n")", drip), false},
      {"comments after output", Endless(Text("a") + R"(,": x\n\n")", drip), true},
      {"bytes of one event", Endless(Text("a") + R"(,"data: {"," ")", drip), true},
      {"a drop each time", Endless(Text("a"), R"(,"token_ms":200)"), true},
      {"an endless stream", Endless(Text(std::string(1000, 'x'))), true},
      {"an endless body", Endless("\"" + std::string(16'384, ' ') + "\"", json), false},
      {"a dripping body", Endless(R"("{")", drip + json), false},
      {"arguments without a name",
       Endless(Calls(R"({"index":0,"function":{"arguments":")" + std::string(1000, 'x') + "\"}}")),
       false},
      {"interleaved calls",
       Endless(Calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{"}},)"
                     R"({"index":1,"id":"b","function":{"name":"g","arguments":"{"}})") +
               "," +
               Calls(R"({"index":0,"function":{"arguments":"1"}},)"
                     R"({"index":1,"function":{"arguments":"2"}})")),
       true},
      {"many calls", R"({"raw_chunks":[)" + Calls(many) + "]}", false},
  };
}

TEST_P(HostileEngine, EveryAnswerEndsLegallyAndIsSettledOnce) {
  ClusterOptions options;
  options.connect_timeout_seconds = 1;
  options.idle_timeout_seconds = 1;
  options.router_settings = {"first_output_timeout_seconds: 2", "answer_timeout_seconds: 3",
                             "max_answer_bytes: 200000"};
  Start(std::move(options));
  int64_t records = 0;
  for (const Row& row : HostileAnswers()) {
    for (const bool stream : {false, true}) {
      SCOPED_TRACE(row.what + (stream ? ", streamed" : ""));
      const ApiKey key = cluster_->NewCustomer(kCredit);
      if (stream && row.after_output) {
        const SseStream answer = cluster_->Stream(key, Body(row.script, true));
        EXPECT_EQ(answer.head.status, 200) << answer.head.body;
        EXPECT_TRUE(answer.complete);
        EXPECT_FALSE(answer.done()) << "decision 23: no [DONE] behind an error";
        ASSERT_FALSE(answer.events.empty());
        EXPECT_EQ(answer.events.back().json()["error"]["code"].str(), "server_error");
      } else {
        const HttpResponse answer = Post(key, kChat, Body(row.script, stream));
        EXPECT_EQ(answer.status, 502) << answer.body.substr(0, 500);
        EXPECT_EQ(answer.json()["error"]["code"].str(), "server_error");
      }
      ++records;
      const int64_t spent = SpentOf(key);
      if (row.after_output && stream) {
        EXPECT_GT(spent, 0) << "input and delivered output are charged";
      } else {
        EXPECT_EQ(spent, 0) << "an error is free (decision 52)";
      }
      EXPECT_TRUE(sim_.WaitFor([](const EngineSim& sim) { return sim.running() == 0; }))
          << "the engine's work is aborted";
    }
  }
  EXPECT_EQ(cluster_->VerifyLedger().usage_records, records) << "each settled once";
  const std::string metrics = Metrics();
  for (const char* limit :
       {"answer_bytes", "tool_calls", "first_output", "silence", "answer_time"}) {
    EXPECT_NE(metrics.find("tollgate_router_answer_limits_total{limit=\"" + std::string(limit)),
              std::string::npos)
        << limit;
  }
}

// Decision 72, on every surface, streamed and not.
TEST_P(HostileEngine, AnEngineThatIgnoresMaxTokensIsStoppedThere) {
  Start({});
  const std::string prompt =
      JsonQuoted(R"(x_sim:{"ignore_max_tokens":true,"tokens":3000,"token_ms":0.1})");
  const std::string messages = R"("messages":[{"role":"user","content":)" + prompt + "}]";
  struct Row {
    const char* path;
    std::string members;
    const char* tokens;  // the member of usage
    const char* end;     // what says that the answer has ended by length
  };
  const Row rows[] = {
      {kChat, R"("max_tokens":20,)" + messages, "completion_tokens", R"("finish_reason":"length")"},
      {"/v1/messages", R"("max_tokens":20,)" + messages, "output_tokens",
       R"("stop_reason":"max_tokens")"},
      {"/v1/responses", R"("max_output_tokens":20,"input":)" + prompt, "output_tokens",
       R"("reason":"max_output_tokens")"}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.path);
    const ApiKey key = cluster_->NewCustomer(kCredit);
    const std::string body = R"({"model":"sim/model",)" + row.members;
    const HttpResponse whole = Post(key, row.path, body + "}");
    EXPECT_EQ(whole.status, 200) << whole.body;
    EXPECT_NE(whole.body.find(row.end), std::string::npos) << whole.body;
    EXPECT_EQ(whole.json()["usage"][row.tokens].integer(), 20) << whole.body;
    const int64_t spent = SpentOf(key);
    const SseStream stream =
        HttpStream(cluster_->port(), row.path, key.headers(), body + R"(,"stream":true})");
    EXPECT_TRUE(stream.complete);
    std::string all;
    for (const auto& event : stream.events) all += event.data + "\n";
    EXPECT_NE(all.find(row.end), std::string::npos) << all;
    EXPECT_EQ(SpentOf(key), 2 * spent) << "both are charged the same";
    EXPECT_TRUE(sim_.WaitFor([](const EngineSim& sim) { return sim.running() == 0; }))
        << "the engine is stopped";
  }
}

TEST_P(HostileEngine, TheOtherSurfacesEndLegallyToo) {
  Start({.router_settings = {"max_answer_bytes: 200000"}});
  const std::string script = Endless(Text(std::string(1000, 'x')));
  const std::string prompt = JsonQuoted("x_sim:" + script);
  const std::pair<const char*, std::string> rows[] = {
      {"/v1/messages",
       R"("max_tokens":1000,"messages":[{"role":"user","content":)" + prompt + "}]"},
      {"/v1/responses", R"("input":)" + prompt},
  };
  for (const auto& [path, members] : rows) {
    SCOPED_TRACE(path);
    const ApiKey key = cluster_->NewCustomer(kCredit);
    const std::string body = R"({"model":"sim/model",)" + members;
    EXPECT_EQ(Post(key, path, body + "}").status, 502);
    const SseStream stream =
        HttpStream(cluster_->port(), path, key.headers(), body + R"(,"stream":true})");
    EXPECT_EQ(stream.head.status, 200);
    EXPECT_TRUE(stream.complete);
    bool failed = false;
    for (const SseEvent& event : stream.events) {
      failed = failed || event.event == "error" || event.event == "response.failed";
      EXPECT_NE(event.event, "message_stop");
      EXPECT_NE(event.event, "response.completed");
    }
    EXPECT_TRUE(failed);
    EXPECT_GT(SpentOf(key), 0);
  }
  const ApiKey key = cluster_->NewCustomer(kCredit);
  const HttpResponse vectors =
      Post(key, "/v1/embeddings",
           R"({"model":"sim/embed","input":"x","x_sim":)" +
               Endless(R"("{\"data\":[","               ")" + std::string(),
                       R"(,"raw_type":"application/json")") +
               "}");
  EXPECT_EQ(vectors.status, 502) << vectors.body;
  EXPECT_EQ(SpentOf(key), 0);
}

int64_t KilobytesOf(pid_t pid, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  int64_t value = 0;
  while (status >> word) {
    if (word == name + ":" && status >> value) return value;
  }
  return 0;
}

// Measured before: 861 MB for one request.
TEST_P(HostileEngine, OneAnswerHoldsBoundedMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
#endif
  Start({});
  const std::string logprobs(1000, 'x');
  const std::string rows[] = {
      Endless(Text(std::string(16'000, 'x'))),
      Endless(Chunk(R"("delta":{"content":"x"},"logprobs":{"content":[")" + logprobs + "\"]}")),
      Endless("\"" + std::string(16'384, ' ') + "\"", R"(,"raw_type":"application/json")"),
      Endless(Calls(R"({"index":0,"function":{"arguments":")" + std::string(16'000, 'x') + "\"}}")),
      Endless(Calls(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{"}})") + "," +
              Chunk(R"("delta":{"content":"x","reasoning":"y"},"logprobs":{"content":[")" +
                    logprobs + "\"]}")),
  };
  const ApiKey key = cluster_->NewCustomer(kCredit);
  for (const std::string& script : rows) {
    SCOPED_TRACE(script.substr(0, 120));
    int64_t before = 0, peak = 0;
    for (const pid_t pid : cluster_->pids()) {
      std::ofstream("/proc/" + std::to_string(pid) + "/clear_refs") << "5";  // resets VmHWM
      before += KilobytesOf(pid, "VmRSS");
    }
    const HttpResponse answer =
        Http(cluster_->port(), "POST", kChat, key.headers(), Body(script, false), 60'000);
    EXPECT_EQ(answer.status, 502) << answer.body.substr(0, 200);
    for (const pid_t pid : cluster_->pids()) peak += KilobytesOf(pid, "VmHWM");
    EXPECT_LT(peak - before, 250 * 1024) << "kilobytes";
    std::printf("grown by %lld KB\n", static_cast<long long>(peak - before));
  }
  SpentOf(key);
}

TEST_P(HostileEngine, EachWorkspaceHasACacheSaltOfItsOwn) {
  Start({});
  const ApiKey a = cluster_->NewCustomer(kCredit), b = cluster_->NewCustomer(kCredit);
  const auto salt = [&](const ApiKey& key, const std::string& more = "") {
    EXPECT_EQ(
        Post(key, kChat,
             R"({"model":"sim/model","messages":[{"role":"user","content":"hi"}])" + more + "}")
            .status,
        200);
    return LastBody()["cache_salt"].str();
  };
  const std::string of_a = salt(a);
  EXPECT_EQ(of_a.size(), 64u);
  EXPECT_EQ(of_a.find(a.workspace_id), std::string::npos);
  EXPECT_EQ(salt(a), of_a);
  EXPECT_NE(salt(b), of_a);
  EXPECT_NE(salt(a, R"(,"cache_salt":"mine")"), of_a);
  EXPECT_EQ(salt(a, R"(,"cache_salt":"mine")"), salt(a, R"(,"cache_salt":"min\u0065")"));
  EXPECT_NE(salt(b, R"(,"cache_salt":")" + of_a + "\""), of_a) << "combined, not replaced";
  const std::string messages =
      R"({"model":"sim/model","max_tokens":5,"messages":[{"role":"user","content":"hi"}]})";
  EXPECT_EQ(Post(a, "/v1/messages", messages).status, 200);
  EXPECT_EQ(LastBody()["cache_salt"].str(), of_a) << "the same prompt, on another surface";
  const std::string router = GetParam() ? "allinone" : "inference-router";
  EXPECT_EQ(cluster_->process(router).Terminate(), 0);
  EXPECT_EQ(cluster_->Restart(router), "");
  EXPECT_EQ(cluster_->WaitReady(10'000), "");
  EXPECT_EQ(salt(a), of_a) << "the same after a restart";
}

TEST_P(HostileEngine, UrlsAndTemplatesNeedPermission) {
  std::string catalog = DefaultCatalog({sim_.Start() ? sim_.base_url() : ""});
  sim_.Stop();
  const size_t dual = catalog.find("sim/dual");
  ASSERT_NE(dual, std::string::npos);
  const size_t pool = catalog.find("    pool: main\n", dual);
  catalog.insert(pool, "    allow_chat_template: true\n");
  Start({.catalog = catalog, .gateway_settings = {R"(media_hosts: ["*.cdn.example"])"}});
  const ApiKey key = cluster_->NewCustomer(kCredit);
  const auto image = [&](const std::string& path, const std::string& url) {
    if (path == "/v1/responses") {
      return Post(key, path,
                  R"({"model":"sim/vision","input":[{"role":"user","content":[{"type":)"
                  R"("input_image","image_url":")" +
                      url + R"("}]}]})");
    }
    const std::string part =
        path == kChat ? R"({"type":"image_url","image_url":{"url":")" + url + R"("}})"
                      : R"({"type":"image","source":{"type":"url","url":")" + url + R"("}})";
    return Post(key, path,
                R"({"model":"sim/vision","max_tokens":5,"messages":[{"role":"user","content":[)" +
                    part + "]}]}");
  };
  for (const std::string path : {kChat, "/v1/messages", "/v1/responses"}) {
    for (const char* url :
         {"http://a.cdn.example/x", "https://evil.example/", "https://a.cdn.example@evil.example/",
          "https://169.254.169.254/", "https:a.cdn.example", "file:///etc/passwd"}) {
      const HttpResponse refused = image(path, url);
      EXPECT_EQ(refused.status, 400) << path << " " << url;
      if (path != "/v1/messages") {
        EXPECT_EQ(refused.json()["error"]["param"].str(), path == kChat ? "messages" : "input");
      }
    }
    EXPECT_EQ(image(path, "HTTPS://A.cdn.example/x").status, 200) << path;
    EXPECT_NE(sim_.requests().back().body.find("HTTPS://A.cdn.example/x"), std::string::npos);
  }
  const auto with_template = [&](const std::string& model, const std::string& members) {
    return Post(key, kChat,
                R"({"model":")" + model + R"(","messages":[{"role":"user","content":"hi"}],)" +
                    members + "}");
  };
  const std::string direct = R"("chat_template":"{{ 1 }}")";
  EXPECT_EQ(with_template("sim/model", direct).json()["error"]["param"].str(), "chat_template");
  EXPECT_EQ(with_template("sim/model", R"("chat_template_kwargs":{"chat_template":"x"})").status,
            400);
  EXPECT_EQ(with_template("sim/model", R"("chat_template_kwargs":{"x":1})").status, 200);
  EXPECT_EQ(with_template("sim/dual", direct).status, 200);
  EXPECT_EQ(LastBody()["chat_template"].str(), "{{ 1 }}");
}

TEST_P(HostileEngine, ATokenizerIsBelievedWithinReasonOnly) {
  Start({});
  sim_.SetDefaultScript(R"({"tokenizer_body":"{\"count\":9223372036854775807}"})");
  const ApiKey key = cluster_->NewCustomer(kCredit);
  const HttpResponse counted =
      Post(key, "/v1/messages/count_tokens",
           R"({"model":"sim/model","messages":[{"role":"user","content":"hello there"}]})");
  EXPECT_EQ(counted.status, 200) << counted.body;
  EXPECT_GT(counted.json()["input_tokens"].integer(), 0);
  EXPECT_LT(counted.json()["input_tokens"].integer(), 100) << "the gateway's own estimate";
  EXPECT_NE(Metrics().find("tollgate_router_implausible_prompt_counts_total 1"), std::string::npos);
}

}  // namespace
}  // namespace tollgate::test
