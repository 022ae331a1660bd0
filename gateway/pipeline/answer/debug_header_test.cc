// The header x-tollgate-debug: operators learn which engine answered, other callers nothing.
#include "gateway/pipeline/answer/debug_header.h"

#include <gtest/gtest.h>

#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

constexpr char kOperatorKey[] = "OPERATOR0001";
constexpr char kTold[] =
    R"(engine="gpu-7", reason=prefix, outstanding-tokens=1200, retries=1, waited-ms=31)";

pb::EngineChoice Choice() {
  pb::EngineChoice choice;
  choice.set_engine_id("gpu-7");
  choice.set_reason("prefix");
  choice.set_outstanding_tokens(1200);
  choice.set_retries(1);
  choice.set_waited_us(31'500);
  return choice;
}

class DebugHeaderTest : public ::testing::Test {
 protected:
  explicit DebugHeaderTest(int64_t keep_alive_ms = 600'000) : rig_(Options(keep_alive_ms)) {}
  static PipelineOptions Options(int64_t keep_alive_ms) {
    PipelineOptions options;
    options.debug_keys = {"another0key0", kOperatorKey};
    options.keep_alive_ms = keep_alive_ms;
    return options;
  }
  // The router sends the choice whether it was asked or not.
  static std::vector<pb::Event> Answer() {
    pb::Event started = Started();
    *started.mutable_started()->mutable_choice() = Choice();
    return {started, Text("ok"), Finish(), End(5, 2)};
  }
  std::shared_ptr<FakeExchange> Send(const std::string& more, const char* asked,
                                     std::vector<pb::Event> events) {
    if (!events.empty()) Push(std::move(events));
    HttpRequest request = rig_.ChatRequest(Body(more));
    if (asked != nullptr) request.headers.emplace_back(kDebugHeader, asked);
    return rig_.Run(ChatSurface(), std::move(request));
  }
  void Push(std::vector<pb::Event> events) {
    rig_.RunOnLoop([&](Loop&) { rig_.inference->script->Push(std::move(events)); });
  }
  void UseOperatorKey() {
    rig_.key.set_key_id(kOperatorKey);
    rig_.Publish();
  }
  Rig rig_;
};

class DebugHeaderKeepAliveTest : public DebugHeaderTest {
 protected:
  DebugHeaderKeepAliveTest() : DebugHeaderTest(20) {}
};

TEST_F(DebugHeaderTest, SaysWhichEngineAnsweredAndWhy) {
  UseOperatorKey();
  for (const char* more : {"", R"("stream":true)"}) {
    const auto answer = Send(more, "true", Answer());
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->header(kDebugHeader), kTold) << more;
    EXPECT_TRUE(rig_.inference->started.back().explain_choice());
    EXPECT_EQ(answer->body.find("gpu-7"), std::string::npos);
  }
}

TEST_F(DebugHeaderTest, OrdinaryKeysNeverLearnOfEnginesWhateverTheRouterSays) {
  pb::Event failed = Failed("upstream_error");
  *failed.mutable_end()->mutable_choice() = Choice();
  for (const char* more : {"", R"("stream":true)"}) {
    for (const auto& events : {Answer(), std::vector<pb::Event>{failed}}) {
      const auto answer = Send(more, "true", events);
      EXPECT_EQ(answer->answers, 1);
      EXPECT_EQ(answer->header(kDebugHeader), "");
      EXPECT_EQ(answer->body.find("gpu-7"), std::string::npos);
      for (const auto& [name, value] : answer->headers) {
        EXPECT_EQ(value.find("gpu-7"), std::string::npos) << name;
      }
      EXPECT_FALSE(rig_.inference->started.back().explain_choice());
    }
  }
}

TEST_F(DebugHeaderTest, AnOperatorWhoDoesNotAskIsNotTold) {
  UseOperatorKey();
  for (const char* asked : {static_cast<const char*>(nullptr), "false", ""}) {
    EXPECT_EQ(Send("", asked, Answer())->header(kDebugHeader), "");
    EXPECT_FALSE(rig_.inference->started.back().explain_choice());
  }
}

TEST_F(DebugHeaderTest, AnErrorSaysItToo) {
  UseOperatorKey();
  pb::Event failed = Failed("upstream_error");
  *failed.mutable_end()->mutable_choice() = Choice();
  for (const char* more : {"", R"("stream":true)"}) {
    const auto answer = Send(more, "true", {failed});
    EXPECT_GE(answer->status, 400);
    EXPECT_EQ(answer->header(kDebugHeader), kTold) << more;
  }
}

TEST_F(DebugHeaderKeepAliveTest, AStreamThatHasBegunSaysItInAComment) {
  UseOperatorKey();
  HttpRequest request = rig_.ChatRequest(Body(R"("stream":true)"));
  request.headers.emplace_back(kDebugHeader, "true");
  bool pushed = false;
  // The first write is the keep-alive comment.
  const auto answer = rig_.Run(ChatSurface(), std::move(request), [&](FakeExchange& exchange) {
    exchange.on_write = [&] {
      if (std::exchange(pushed, true)) return;
      rig_.inference->script->Push(Answer());
    };
  });
  EXPECT_EQ(answer->header(kDebugHeader), "");
  const size_t told = answer->body.find(std::string(": x-tollgate-debug: ") + kTold + "\n");
  ASSERT_NE(told, std::string::npos) << answer->body;
  EXPECT_LT(told, answer->body.find("data: "));
  EXPECT_TRUE(answer->ended);
}

}  // namespace
}  // namespace tollgate::gateway
