// Runs against simulated engines of each dialect: the count equals the prompt_tokens that they
// report.
#include "services/inference_router/count/token_counter.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "common/json/json.h"
#include "common/json/work.h"
#include "common/runtime/testing/run_coro.h"
#include "tests/support/engine_sim.h"
#include "tests/support/http.h"

namespace tollgate::inference_router {
namespace {

using namespace catalog::v1;  // NOLINT: engine kinds
using test::EngineSim;
using test::SimDialect;

constexpr char kModel[] = "ns/model";

struct Member {
  EngineKind kind;
  SimDialect dialect;
};

// A pool of simulated engines that serve "sim/model".
class Pool {
 public:
  explicit Pool(const std::vector<Member>& members) {
    loops_.Start();
    snapshot_.set_version(1);
    Model* model = snapshot_.add_models();
    model->set_id(kModel);
    model->set_engine_model("sim/model");
    model->set_pool("p");
    snapshot_.add_pools()->set_name("p");
    for (const Member& member : members) {
      sims_.push_back(std::make_unique<EngineSim>(
          test::EngineSimOptions{.api_key = "secret", .dialect = member.dialect}));
      EXPECT_TRUE(sims_.back()->Start());
      Engine* engine = snapshot_.mutable_pools(0)->add_engines();
      engine->set_id("engine" + std::to_string(sims_.size()));
      engine->set_kind(member.kind);
      engine->set_base_url(sims_.back()->base_url());
      engine->set_api_key("secret");
    }
    table_ = std::make_shared<const RoutingTable>(snapshot_, nullptr);
  }
  // Both belong to the loop.
  ~Pool() {
    loops_.loop(0).RunAndWait([this] {
      counter_.reset();
      http_.reset();
    });
  }

  inference::v1::CountTokensResponse Count(
      const std::string& members,
      inference::v1::RequestKind kind = inference::v1::REQUEST_KIND_CHAT,
      const std::string& model = kModel, int64_t only_above = 0) {
    inference::v1::CountTokensRequest request;
    request.set_only_above_tokens(only_above);
    request.set_model(model);
    request.set_kind(kind);
    request.set_members_json(members);
    return Count(std::move(request));
  }
  inference::v1::CountTokensResponse Count(inference::v1::CountTokensRequest request) {
    return testing::RunOn(loops_.loop(0), [&](Loop& loop) -> Task<CountTokensResponse> {
      if (!counter_) {
        http_ = std::make_unique<http::Client>(loop);
        counter_ = std::make_unique<TokenCounter>(loop, *http_, clock, decoders,
                                                  [this] { ++implausible; });
      }
      co_return co_await counter_->Count(table_, request);
    });
  }
  // Starts `count` calls at the same time and returns how many were counted.
  int CountAtOnce(int count, const std::string& members) {
    EXPECT_TRUE(Count(members).counted());  // creates the counter
    inference::v1::CountTokensRequest request;
    request.set_model(kModel);
    request.set_kind(inference::v1::REQUEST_KIND_CHAT);
    request.set_members_json(members);
    const int64_t before = Asked(0);
    std::atomic<int> counted{0}, ended{0};
    const auto one = [](TokenCounter& counter, std::shared_ptr<const RoutingTable> table,
                        inference::v1::CountTokensRequest request, std::atomic<int>& counted,
                        std::atomic<int>& ended) -> Task<void> {
      const auto response = co_await counter.Count(std::move(table), std::move(request));
      counted += response.counted() ? 1 : 0;
      ++ended;
    };
    loops_.loop(0).Post([&] {
      for (int i = 0; i < count; ++i) {
        loops_.loop(0).Spawn(one(*counter_, table_, request, counted, ended));
      }
    });
    EXPECT_TRUE(sims_[0]->WaitFor([&](const EngineSim&) { return ended == count; }));
    EXPECT_EQ(Asked(0) - before, count);
    return counted;
  }
  // The prompt_tokens that the engine reports for this request.
  int64_t ReportedBy(const std::string& path, const std::string& members) {
    return test::Http(sims_[0]->port(), "POST", path, {{"Authorization", "Bearer secret"}},
                      R"({"model":"sim/model",)" + members + "}")
        .json()["usage"]["prompt_tokens"]
        .integer(-1);
  }
  EngineSim& sim(size_t index) { return *sims_[index]; }
  int64_t Asked(size_t index) { return sims_[index]->totals().tokenizer_requests; }

  // Bytes of JSON that the loop has parsed.
  uint64_t ParsedByLoop() {
    uint64_t parsed = 0;
    loops_.loop(0).RunAndWait([&] { parsed = json::internal::parsed_bytes; });
    return parsed;
  }

  ManualClock clock;
  std::shared_ptr<ThreadPool> decoders = std::make_shared<ThreadPool>(1, 2, "decode");
  std::atomic<int> implausible{0};

 private:
  using CountTokensResponse = inference::v1::CountTokensResponse;
  std::vector<std::unique_ptr<EngineSim>> sims_;
  Snapshot snapshot_;
  std::shared_ptr<const RoutingTable> table_;
  LoopPool loops_{1};
  std::unique_ptr<http::Client> http_;
  std::unique_ptr<TokenCounter> counter_;
};

constexpr char kHello[] = R"("messages":[{"role":"user","content":"hello there"}])";

const std::string kChats[] = {
    kHello,
    R"("messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Grüße 東京東京東京 \ud83d\ude42 \u00e9\u00e9"}])",
    R"("messages":[{"role":"user","content":[{"type":"text","text":"one two"},{"type":"text","text":"three"}]}])",
    R"("messages":[{"role":"user","content":"2+2?"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\": 2}"}}]},{"role":"tool","tool_call_id":"c1","content":"4"}],"tools":[{"type":"function","function":{"name":"add","description":"adds two numbers","parameters":{"type":"object"}}}])",
    std::string(kHello) + R"(,"reasoning_effort":"high","documents":[{"text":"a b c"}])",
    std::string(kHello) + R"(,"chat_template_kwargs":{"documents":[{"text":"a b c"}]})",
};

const Member kKinds[] = {{ENGINE_KIND_VLLM, SimDialect::kVllm},
                         {ENGINE_KIND_OPENAI, SimDialect::kVllm},
                         {ENGINE_KIND_SGLANG, SimDialect::kSglang},
                         {ENGINE_KIND_LLAMACPP, SimDialect::kLlamaCpp},
                         {ENGINE_KIND_TGI, SimDialect::kTgi}};

TEST(TokenCounter, EveryKindsCountEqualsItsReportedUsage) {
  for (const Member& member : kKinds) {
    Pool pool({member});
    for (const std::string& chat : kChats) {
      SCOPED_TRACE(EngineKind_Name(member.kind) + " " + chat);
      const auto counted = pool.Count(chat);
      EXPECT_TRUE(counted.counted());
      EXPECT_EQ(counted.prompt_tokens(), pool.ReportedBy("/v1/chat/completions", chat));
    }
    for (const std::string prompt :
         {R"("one two three")", R"(["one two","three"])", "[1,2,3]", "[[1,2],[3,4]]"}) {
      SCOPED_TRACE(EngineKind_Name(member.kind) + " " + prompt);
      const std::string members = "\"prompt\":" + prompt;
      const auto counted = pool.Count(members, inference::v1::REQUEST_KIND_COMPLETION);
      EXPECT_TRUE(counted.counted());
      if (prompt[1] != '[') {  // the simulator counts a list of lists differently
        EXPECT_EQ(counted.prompt_tokens(), pool.ReportedBy("/v1/completions", members));
      }
    }
  }
}

TEST(TokenCounter, AnEngineWithoutATokenizerIsSkippedForSomeMinutes) {
  Pool pool({{ENGINE_KIND_OPENAI, SimDialect::kNone}});
  EXPECT_FALSE(pool.Count(kHello).counted());
  pool.sim(0).Stop();  // a call to it would fail
  EXPECT_FALSE(pool.Count(kHello).counted());
  ASSERT_TRUE(pool.sim(0).Start());

  // With one engine with a tokenizer and one without, in either order, the tokenizer is found.
  Pool two({{ENGINE_KIND_OPENAI, SimDialect::kNone}, {ENGINE_KIND_VLLM, SimDialect::kVllm}});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(two.Count(kHello).counted());
  EXPECT_EQ(two.Asked(1), 4);
}

TEST(TokenCounter, ATokenizerIsFoundAfterTheSkipTime) {
  Pool pool({{ENGINE_KIND_OPENAI, SimDialect::kVllm}});
  pool.sim(0).SetDefaultScript(R"({"tokenizer_status":404})");
  EXPECT_FALSE(pool.Count(kHello).counted());
  pool.sim(0).SetDefaultScript("{}");
  EXPECT_FALSE(pool.Count(kHello).counted());
  EXPECT_EQ(pool.Asked(0), 1) << "remembered";
  pool.clock.Advance(10 * 60 * 1'000'000LL);
  EXPECT_TRUE(pool.Count(kHello).counted());
}

TEST(TokenCounter, AFailureIsRetriedOnceOnAnotherEngine) {
  const Member vllm{ENGINE_KIND_VLLM, SimDialect::kVllm};
  Pool pool({vllm, vllm, vllm});
  pool.sim(0).SetDefaultScript(R"({"tokenizer_status":500})");
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(pool.Count(kHello).counted());
  EXPECT_GT(pool.Asked(0), 0);
  for (size_t i = 0; i < 3; ++i) pool.sim(i).SetDefaultScript(R"({"tokenizer_status":503})");
  const int64_t before = pool.Asked(0) + pool.Asked(1) + pool.Asked(2);
  EXPECT_FALSE(pool.Count(kHello).counted());
  EXPECT_EQ(pool.Asked(0) + pool.Asked(1) + pool.Asked(2), before + 2) << "at most two engines";
}

TEST(TokenCounter, ARefusedPromptIsNotRetried) {
  const Member old{ENGINE_KIND_SGLANG, SimDialect::kSglangOld};
  Pool pool({old, old});
  EXPECT_FALSE(pool.Count(kHello).counted()) << "this dialect takes no messages";
  EXPECT_EQ(pool.Asked(0) + pool.Asked(1), 1);
  EXPECT_TRUE(pool.Count(R"("prompt":"hi")", inference::v1::REQUEST_KIND_COMPLETION).counted());
}

TEST(TokenCounter, EnginesThatAreDownAreSkipped) {
  const Member vllm{ENGINE_KIND_VLLM, SimDialect::kVllm};
  Pool pool({vllm, vllm});
  pool.sim(0).Stop();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(pool.Count(kHello).counted());
  pool.sim(1).Stop();
  EXPECT_FALSE(pool.Count(kHello).counted());
  EXPECT_FALSE(pool.Count(kHello).counted()) << "both are in back-off";
}

TEST(TokenCounter, ManyConcurrentCallsAreQueuedAndAllCounted) {
  Pool pool({{ENGINE_KIND_VLLM, SimDialect::kVllm}});
  EXPECT_EQ(pool.CountAtOnce(100, kHello), 100);
}

// Other requests of the loop would wait while it decodes a text.
TEST(TokenCounter, TheLoopDecodesNoLargeText) {
  std::string words;
  while (words.size() <= 2 * kMaxBytesDecodedOnLoop) words += "word ";
  const std::string chat =
      R"("messages":[{"role":"user","content":")" + words + R"("}],"reasoning_effort":"high")";
  const std::string prompt = R"("prompt":")" + words + "\"";
  for (const Member& member : kKinds) {
    SCOPED_TRACE(EngineKind_Name(member.kind));
    Pool pool({member});
    const uint64_t before = pool.ParsedByLoop();
    const auto counted = pool.Count(chat);
    EXPECT_TRUE(counted.counted());
    EXPECT_EQ(counted.prompt_tokens(), pool.ReportedBy("/v1/chat/completions", chat));
    EXPECT_TRUE(pool.Count(prompt, inference::v1::REQUEST_KIND_COMPLETION).counted());
    EXPECT_LE(pool.ParsedByLoop() - before, kMaxBytesDecodedOnLoop);
  }
}

TEST(TokenCounter, ALargeTextIsNotCountedWhenTooManyWait) {
  Pool pool({{ENGINE_KIND_VLLM, SimDialect::kVllm}});
  std::promise<void> started;
  std::promise<void> release;
  ASSERT_TRUE(pool.decoders->Submit([&] {
    started.set_value();
    release.get_future().wait();
  }));
  started.get_future().wait();
  while (pool.decoders->Submit([] {})) {
  }
  const std::string text(kMaxBytesDecodedOnLoop, 'a');
  EXPECT_FALSE(pool.Count(R"("messages":[{"role":"user","content":")" + text + R"("}])").counted());
  EXPECT_FALSE(
      pool.Count(R"("prompt":")" + text + "\"", inference::v1::REQUEST_KIND_COMPLETION).counted());
  EXPECT_EQ(pool.Asked(0), 0);
  EXPECT_TRUE(pool.Count(kHello).counted());
  release.set_value();
}

TEST(TokenCounter, TellsTheLongestOfSeveralPrompts) {
  Pool pool({{ENGINE_KIND_VLLM, SimDialect::kVllm}});
  for (const auto kind :
       {inference::v1::REQUEST_KIND_COMPLETION, inference::v1::REQUEST_KIND_EMBEDDING}) {
    const std::string name = kind == inference::v1::REQUEST_KIND_COMPLETION ? "prompt" : "input";
    const auto counted = pool.Count("\"" + name + R"(":["one","two words","three"])", kind);
    EXPECT_TRUE(counted.counted());
    EXPECT_EQ(counted.prompt_tokens(), 4);
    EXPECT_EQ(counted.longest_prompt_tokens(), 2);
  }
}

// Most of the 1000 inputs certainly fit. Among those that may not, the longest ones decide.
TEST(TokenCounter, OfManyPromptsOnlyTheLongestAreCounted) {
  Pool pool({{ENGINE_KIND_VLLM, SimDialect::kVllm}});
  std::string inputs = R"("input":["short")";
  for (int i = 0; i < 1000; ++i) inputs += R"(,"another")";
  for (int i = 1; i <= 40; ++i) inputs += ",\"" + std::string(100 + i, ' ') + "w w\"";
  const auto counted = pool.Count(inputs + "]", inference::v1::REQUEST_KIND_EMBEDDING, kModel, 100);
  EXPECT_TRUE(counted.counted());
  EXPECT_EQ(counted.longest_prompt_tokens(), 2);
  EXPECT_EQ(pool.Asked(0), 16);
}

TEST(TokenCounter, UnsupportedRequestsAreNotCounted) {
  Pool pool({{ENGINE_KIND_OLLAMA, SimDialect::kNone}, {ENGINE_KIND_VLLM, SimDialect::kVllm}});
  EXPECT_FALSE(pool.Count(kHello, inference::v1::REQUEST_KIND_CHAT, "ns/other").counted());
  EXPECT_FALSE(pool.Count(R"("input":"x")", inference::v1::REQUEST_KIND_UNSPECIFIED).counted());
  EXPECT_FALSE(pool.Count(R"("no":"prompt")", inference::v1::REQUEST_KIND_COMPLETION).counted());
  std::string many = R"("prompt":["x")";
  for (int i = 0; i < 50; ++i) many += R"(,"x")";
  EXPECT_FALSE(pool.Count(many + "]", inference::v1::REQUEST_KIND_COMPLETION).counted());
  EXPECT_EQ(pool.Asked(1), 0);
  EXPECT_TRUE(pool.Count(kHello).counted()) << "Ollama is skipped";
}

// H75: a count above the prompt's bytes would refuse prompts that fit.
TEST(TokenCounter, AnImplausibleCountIsNotBelieved) {
  for (const char* count :
       {"9223372036854775807", "100000", "-1", "1e300", "1.5", "\"9\"", "18446744073709551616"}) {
    SCOPED_TRACE(count);
    std::string escaped;
    json::AppendEscaped(escaped, count);
    Pool pool({{ENGINE_KIND_VLLM, SimDialect::kVllm}});
    pool.sim(0).SetDefaultScript(R"({"tokenizer_body":"{\"count\":)" + escaped + R"(}"})");
    EXPECT_FALSE(pool.Count(kHello).counted());
  }
}

TEST(TokenCounter, AnImplausibleCountIsCountedAndAnotherEngineIsAsked) {
  Pool pool({{ENGINE_KIND_VLLM, SimDialect::kVllm}, {ENGINE_KIND_VLLM, SimDialect::kVllm}});
  pool.sim(0).SetDefaultScript(R"({"tokenizer_body":"{\"count\":9223372036854775807}"})");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(pool.Count(kHello).prompt_tokens(), 9) << "the other engine's count";
  }
  EXPECT_EQ(pool.implausible, 1);
}

inference::v1::CountTokensRequest ChatCount(const std::string& content) {
  inference::v1::CountTokensRequest request;
  request.set_model(kModel);
  request.set_kind(inference::v1::REQUEST_KIND_CHAT);
  request.set_members_json(R"("messages":[{"role":"user","content":)" + content + "}]");
  return request;
}

// Decision 44: counts the texts of a chat with images, in every dialect.
TEST(TokenCounter, CountsTheTextsAlone) {
  const std::string text = R"({"type":"text","text":"one two three"})";
  auto request = ChatCount("[" + text + R"(,{"type":"image_url","image_url":{"url":"data:,"}}])");
  request.set_text_only(true);
  for (const Member member : {Member{ENGINE_KIND_VLLM, SimDialect::kVllm},
                              Member{ENGINE_KIND_SGLANG, SimDialect::kSglang},
                              Member{ENGINE_KIND_LLAMACPP, SimDialect::kLlamaCpp},
                              Member{ENGINE_KIND_TGI, SimDialect::kTgi}}) {
    Pool pool({member});
    const auto plain = pool.Count(ChatCount("[" + text + "]"));
    ASSERT_TRUE(plain.counted());
    EXPECT_EQ(pool.Count(request).prompt_tokens(), plain.prompt_tokens());
  }
}

TEST(TokenCounter, TellsTheLeastWhereNoEngineCounts) {
  std::string words = "\"w";
  for (int i = 1; i < 80; ++i) words += " w";
  auto request = ChatCount(words + "\"");
  Pool silent({{ENGINE_KIND_OLLAMA, SimDialect::kNone}});
  EXPECT_EQ(silent.Count(request).least_prompt_tokens(), 0) << "it was not asked for";
  request.set_or_least(true);
  EXPECT_FALSE(silent.Count(request).counted());
  EXPECT_EQ(silent.Count(request).least_prompt_tokens(), 10);
  EXPECT_EQ(silent.Asked(0), 0);
  Pool counting({{ENGINE_KIND_VLLM, SimDialect::kVllm}});
  EXPECT_TRUE(counting.Count(request).counted());
  EXPECT_EQ(counting.Count(request).least_prompt_tokens(), 0);
}

TEST(TokenCounter, TheSumOfSeveralPromptsDoesNotOverflow) {
  Pool pool({{ENGINE_KIND_VLLM, SimDialect::kVllm}});
  pool.sim(0).SetDefaultScript(R"({"tokenizer_body":"{\"count\":9223372036854775807}"})");
  EXPECT_FALSE(
      pool.Count(R"("prompt":["a","b","c"])", inference::v1::REQUEST_KIND_COMPLETION).counted());
}

TEST(TokenCounter, ATokenizerThatDripsIsGivenUp) {
  Pool pool({{ENGINE_KIND_VLLM, SimDialect::kVllm}, {ENGINE_KIND_VLLM, SimDialect::kVllm}});
  pool.sim(0).SetDefaultScript(R"({"tokenizer_drip_ms":100})");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(pool.Count(kHello).counted());
}

TEST(TokenCounter, AResponseLargerThanThePromptAllowsIsNotRead) {
  Pool pool({{ENGINE_KIND_VLLM, SimDialect::kVllm}});
  pool.sim(0).SetDefaultScript(R"({"tokenizer_body":"{\"count\":9,\"x\":\")" +
                               std::string(4 << 20, 'x') + R"(\"}"})");
  EXPECT_FALSE(pool.Count(kHello).counted());
}

}  // namespace
}  // namespace tollgate::inference_router
