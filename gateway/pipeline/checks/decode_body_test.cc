// Bodies with a Content-Encoding. See docs/design/hostile-inputs.md H73, decision 46.
#include "gateway/pipeline/checks/decode_body.h"

#include "common/coding/testing/encode.h"
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using coding::Coding;
using coding::testing::Encode;
using coding::testing::Gzip;
using namespace testing;

constexpr Coding kAll[] = {Coding::kGzip, Coding::kZstd, Coding::kBrotli};

class DecodeBodyTest : public PipelineFixture {
 protected:
  HttpRequest Coded(std::string coding, std::string bytes) {
    HttpRequest request = rig.ChatRequest(std::move(bytes));
    request.headers.emplace_back("content-encoding", std::move(coding));
    return request;
  }
  Answer Ask(HttpRequest request) { return rig.Run(ChatSurface(), std::move(request)); }
  // Returns the members that reach the engine.
  std::string MembersOf(HttpRequest request) {
    PushEvents({Started(), Text("ok"), Finish(), End(3, 1)});
    const Answer answer = Ask(std::move(request));
    EXPECT_EQ(answer->status, 200) << answer->body;
    return rig.inference->started.empty() ? "" : rig.inference->started.back().members_json();
  }
};

std::string Noise(size_t size) {
  std::string text;
  for (uint64_t state = 7; text.size() < size;) {
    state = state * 6364136223846793005 + 1442695040888963407;
    text += "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[state >> 58];
  }
  return text;
}

TEST_F(DecodeBodyTest, EngineGetsTheDecodedBody) {
  // Small bodies are decoded on the loop, larger ones on the pool.
  for (const size_t size : {size_t{10}, size_t{400'000}, size_t{3'000'000}}) {
    rig.snapshot.mutable_models(0)->set_context_window(10'000'000);
    rig.Publish();
    const std::string body = Body("\"user_text\":\"" + Noise(size) + "\"");
    const std::string plain = MembersOf(rig.ChatRequest(body));
    ASSERT_GT(plain.size(), size);
    for (const Coding coding : kAll) {
      EXPECT_TRUE(MembersOf(Coded(std::string(CodingName(coding)), Encode(coding, body))) == plain)
          << CodingName(coding) << " " << size;
    }
  }
  EXPECT_NE(MembersOf(Coded("identity", Body())), "");
  EXPECT_NE(MembersOf(Coded(" GZip ", Gzip(Body()))), "");
}

TEST_F(DecodeBodyTest, OtherCodingsAndListsAreRefused) {
  const std::string coded = Gzip(Body());
  for (const char* coding : {"deflate", "compress", "gzip, gzip", "gzip, br", "gzip,", "x", "*"}) {
    const Answer answer = Ask(Coded(coding, coded));
    EXPECT_EQ(ErrorOf(answer), "400 bad_request invalid_request_error") << coding;
    EXPECT_NE(answer->body.find("Content-Encoding"), std::string::npos);
  }
  HttpRequest twice = Coded("gzip", Gzip(coded));
  twice.headers.emplace_back("content-encoding", "gzip");
  EXPECT_EQ(ErrorOf(Ask(std::move(twice))), "400 bad_request invalid_request_error");
}

TEST_F(DecodeBodyTest, BrokenBodiesAreRefused) {
  for (const Coding coding : kAll) {
    const std::string coded = Encode(coding, Body());
    for (const std::string& bytes :
         {coded.substr(0, coded.size() / 2), coded + "x", Body(), std::string()}) {
      const Answer answer = Ask(Coded(std::string(CodingName(coding)), bytes));
      EXPECT_EQ(ErrorOf(answer), "400 bad_request invalid_request_error") << CodingName(coding);
      EXPECT_NE(answer->body.find("Content-Encoding"), std::string::npos);
    }
    // A decoded body is checked like any other body.
    EXPECT_EQ(ErrorOf(Ask(Coded(std::string(CodingName(coding)), Encode(coding, "{\"a\":")))),
              "400 bad_request invalid_request_error");
  }
  EXPECT_TRUE(rig.inference->started.empty());
}

// Decision 46.
TEST_F(DecodeBodyTest, NothingIsDecodedWithoutAKey) {
  HttpRequest request = Coded("deflate", "garbage");
  request.headers.erase(request.headers.begin());
  EXPECT_EQ(ErrorOf(Ask(std::move(request))), "401 invalid_api_key authentication_error");
}

TEST_F(DecodeBodyTest, BombsAreRefused) {
  for (const Coding coding : kAll) {
    const Answer answer =
        Ask(Coded(std::string(CodingName(coding)), Encode(coding, std::string(14 << 20, ' '))));
    EXPECT_EQ(ErrorOf(answer), "400 bad_request invalid_request_error");
    EXPECT_NE(answer->body.find("100 times"), std::string::npos) << answer->body;
  }
}

TEST(DecodeBody, DecodedBodiesHaveTheLimitOfPlainOnes) {
  Rig rig(PipelineOptions{.max_body_bytes = 1'000'000});
  const std::string body = Body("\"user_text\":\"" + Noise(1'000'000) + "\"");
  for (const Coding coding : kAll) {
    HttpRequest request = rig.ChatRequest(Encode(coding, body));
    request.headers.emplace_back("content-encoding", CodingName(coding));
    const auto answer = rig.Run(ChatSurface(), std::move(request));
    EXPECT_EQ(answer->status, 400);
    EXPECT_NE(answer->body.find("too large"), std::string::npos) << answer->body;
  }
}

// An exchange that accounts for memory.
class CountingExchange : public FakeExchange {
 public:
  CountingExchange(Loop& loop, HttpRequest request, MemoryBudget& memory)
      : FakeExchange(loop, std::move(request)), memory_(memory) {}
  MemoryBudget* memory() override { return &memory_; }

 private:
  MemoryBudget& memory_;
};

TEST_F(DecodeBodyTest, MemoryIsCountedBeforeItIsUsed) {
  const std::string body = Body("\"user_text\":\"" + Noise(3'000'000) + "\"");
  for (const auto& [limit, status] : {std::pair<int64_t, int>{4 << 20, 503}, {64 << 20, 200}}) {
    MemoryBudget memory(limit);
    rig.snapshot.mutable_models(0)->set_context_window(10'000'000);
    rig.Publish();
    if (status == 200) PushEvents({Started(), Text("ok"), Finish(), End(3, 1)});
    tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
      CountingExchange exchange(loop, Coded("gzip", Gzip(body)), memory);
      co_await RunInference(*rig.worker, ChatSurface(), exchange, rig.endpoint);
      EXPECT_EQ(exchange.status, status) << exchange.body;
      if (status == 503) EXPECT_EQ(exchange.header("retry-after"), "2");
      co_return 0;
    });
    EXPECT_EQ(memory.used(), 0);
  }
}

}  // namespace
}  // namespace tollgate::gateway
