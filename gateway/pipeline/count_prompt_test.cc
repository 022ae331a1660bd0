// max_tokens: 0 answers with the prompt's size and without an engine. spec: decisions.md 30.
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: the fixture's words

class MaxTokensZero : public PipelineFixture {
 protected:
  Answer Ask(const std::string& more = "") { return Send(Body(R"("max_tokens":0)" + more)); }
  static json::Value Usage(const json::Document& document) { return document.root().Find("usage"); }
};

TEST_F(MaxTokensZero, UsageIsTheEnginesOwnCount) {
  rig.inference->count->set_counted(true);
  rig.inference->count->set_prompt_tokens(321);
  const Answer answer = Ask();
  EXPECT_EQ(answer->status, 200);
  EXPECT_NE(answer->body.find("\"prompt_tokens\":321"), std::string::npos) << answer->body;
  EXPECT_NE(answer->body.find("\"finish_reason\":\"length\""), std::string::npos);
  ASSERT_EQ(rig.inference->counted.size(), 1u);
  EXPECT_EQ(rig.inference->counted[0].model(), "ns/model");
  EXPECT_TRUE(rig.inference->started.empty());

  const Answer stream = Ask(R"(,"stream":true,"stream_options":{"include_usage":true})");
  EXPECT_TRUE(stream->ended);
  EXPECT_NE(stream->body.find("\"prompt_tokens\":321"), std::string::npos) << stream->body;
}

TEST_F(MaxTokensZero, WithoutATokenizerItIsTheEstimate) {
  const Answer none = Ask();
  rig.inference->count = Unavailable("no router");
  const Answer away = Ask();
  EXPECT_EQ(none->status, 200);
  EXPECT_EQ(away->status, 200);
  EXPECT_NE(none->body.find("\"prompt_tokens\":4,"), std::string::npos) << none->body;
  EXPECT_NE(away->body.find("\"prompt_tokens\":4,"), std::string::npos) << away->body;
}

TEST_F(MaxTokensZero, NothingIsChargedAndTheSlotIsKeptWhileItCounts) {
  bool held = false;
  rig.inference->during_count = [&] { held = rig.worker->leases->size() == 1; };
  Ask();
  EXPECT_TRUE(held);
  ASSERT_EQ(rig.billing->voided.size(), 1u);
  ASSERT_EQ(rig.limiter->released.size(), 1u);
  EXPECT_FALSE(rig.limiter->released[0].refund());
  EXPECT_EQ(rig.limiter->released[0].actual_tokens(), 0);
  ExpectNoLeases();
}

TEST_F(MaxTokensZero, APromptAboveTheWindowIsRefused) {  // decisions.md 18 and 32
  rig.inference->count->set_counted(true);
  rig.inference->count->set_prompt_tokens(1000);
  EXPECT_EQ(Ask()->status, 200) << "as large as the window";
  rig.inference->count->set_prompt_tokens(1001);
  for (const char* more : {"", R"(,"stream":true)"}) {
    const Answer answer = Ask(more);
    EXPECT_EQ(Told(answer), "400 context_length_exceeded invalid_request_error param=messages");
    EXPECT_NE(answer->body.find("maximum context length is 1000 tokens"), std::string::npos)
        << answer->body;
    EXPECT_TRUE(rig.limiter->released.back().refund());
  }
  EXPECT_EQ(rig.billing->voided.size(), 3u);
  ExpectNoLeases();
}

TEST_F(MaxTokensZero, ImagesAreNotCountedAsText) {
  rig.snapshot.mutable_models(0)->add_capabilities(catalog::v1::CAPABILITY_VISION);
  rig.snapshot.mutable_models(0)->set_context_window(100'000);
  rig.Publish();
  rig.inference->count->set_counted(true);
  rig.inference->count->set_prompt_tokens(1);
  const Answer answer = Send(
      R"({"model":"ns/model","max_tokens":0,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]})");
  EXPECT_EQ(answer->status, 200) << answer->body;
  EXPECT_TRUE(rig.inference->counted.empty()) << "no tokenizer knows what an image comes to";
}

// Input and max_tokens above the window is refused also where the cap hides max_tokens from the
// engine. spec: decisions.md 18, H59.
class MaxTokensAboveTheCap : public PipelineFixture {
 protected:
  Answer AskAnEngine(const std::string& more) {
    Say({Started(), Text("ok"), Finish(), End(1, 1)});
    return Send(Body(more));
  }
  void Count(int64_t tokens) {
    rig.inference->count->set_counted(true);
    rig.inference->count->set_prompt_tokens(tokens);
  }
};

TEST_F(MaxTokensAboveTheCap, IsRefusedWhenTheCountedPromptLeavesNoRoomForIt) {
  Count(2);
  const Answer answer = Send(Body(R"("max_tokens":999)"));
  EXPECT_EQ(Told(answer), "400 context_length_exceeded invalid_request_error param=max_tokens");
  EXPECT_NE(answer->body.find("maximum context length is 1000 tokens. However, you requested 1001 "
                              "tokens (2 in the prompt, 999 for the completion)"),
            std::string::npos)
      << answer->body;
  EXPECT_TRUE(rig.inference->started.empty());
  EXPECT_TRUE(rig.limiter->released.back().refund());
  ExpectNoLeases();
}

TEST_F(MaxTokensAboveTheCap, IsLoweredWhenItFits) {
  Count(1);
  EXPECT_EQ(AskAnEngine(R"("max_tokens":999)")->status, 200);
  ASSERT_EQ(rig.inference->started.size(), 1u);
  EXPECT_EQ(rig.inference->started[0].max_tokens(), 400);
  EXPECT_FALSE(rig.inference->started[0].members_json().empty());
}

TEST_F(MaxTokensAboveTheCap, IsLoweredWhenNobodyCanCount) {
  EXPECT_EQ(AskAnEngine(R"("max_tokens":999)")->status, 200);
  EXPECT_EQ(rig.inference->started.size(), 1u);
}

TEST_F(MaxTokensAboveTheCap, IsCountedOnlyWhereThatDecides) {
  EXPECT_EQ(AskAnEngine(R"("max_tokens":900)")->status, 200) << "fits whatever the prompt is";
  EXPECT_EQ(AskAnEngine(R"("max_tokens":400)")->status, 200) << "the engine is told all of it";
  EXPECT_TRUE(rig.inference->counted.empty());
}

}  // namespace
}  // namespace tollgate::gateway
