// The model's cap hides a large max_tokens from the engine, so requests with prompt and max_tokens
// above the window are refused by counting. See decision 18, H59.
#include "gateway/pipeline/admission/count_prompt.h"

#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

class MaxTokensAboveTheCap : public PipelineFixture {
 protected:
  Answer SendToEngine(const std::string& more) {
    PushEvents({Started(), Text("ok"), Finish(), End(1, 1)});
    return Send(Body(more));
  }
  void Count(int64_t tokens) {
    rig.inference->count->set_counted(true);
    rig.inference->count->set_prompt_tokens(tokens);
  }
};

TEST_F(MaxTokensAboveTheCap, IsRefusedWhenItDoesNotFitBesideTheCountedPrompt) {
  Count(2);
  const Answer answer = Send(Body(R"("max_tokens":999)"));
  EXPECT_EQ(ErrorOf(answer), "400 context_length_exceeded invalid_request_error param=max_tokens");
  EXPECT_NE(answer->body.find("maximum context length is 1000 tokens. However, you requested 1001 "
                              "tokens (2 in the prompt, 999 for the completion)"),
            std::string::npos)
      << answer->body;
  EXPECT_TRUE(rig.inference->started.empty());
  EXPECT_TRUE(rig.limiter->released.back().refund());
  ExpectNoSlots();
}

TEST_F(MaxTokensAboveTheCap, IsLoweredToTheCapWhenItFits) {
  Count(1);
  EXPECT_EQ(SendToEngine(R"("max_tokens":999)")->status, 200);
  ASSERT_EQ(rig.inference->started.size(), 1u);
  EXPECT_EQ(rig.inference->started[0].max_tokens(), 400);
  EXPECT_FALSE(rig.inference->started[0].members_json().empty());
}

TEST_F(MaxTokensAboveTheCap, IsLoweredToTheCapWhenNoEngineCanCount) {
  EXPECT_EQ(SendToEngine(R"("max_tokens":999)")->status, 200);
  EXPECT_EQ(rig.inference->started.size(), 1u);
}

TEST_F(MaxTokensAboveTheCap, ThePromptIsCountedOnlyWhenTheResultMatters) {
  EXPECT_EQ(SendToEngine(R"("max_tokens":900)")->status, 200) << "fits with any prompt";
  EXPECT_EQ(SendToEngine(R"("max_tokens":400)")->status, 200)
      << "the engine gets max_tokens unchanged";
  EXPECT_TRUE(rig.inference->counted.empty());
}

class PromptAboveTheWindow : public MaxTokensAboveTheCap {
 protected:
  // The context window is 1000 tokens.
  static std::string Long(size_t bytes) { return std::string(bytes, 'a'); }
  static std::string LongChat(size_t bytes) {
    return R"({"model":"ns/model","messages":[{"role":"user","content":")" + Long(bytes) +
           R"("}]})";
  }
};

TEST_F(PromptAboveTheWindow, IsRefusedWithoutAnOutputLimit) {  // decision 44
  Count(1001);
  EXPECT_EQ(ErrorOf(Send(LongChat(2000))),
            "400 context_length_exceeded invalid_request_error param=messages");
  EXPECT_TRUE(rig.inference->started.empty());
  EXPECT_EQ(rig.billing->voided.size(), 1u);
  ExpectNoSlots();
}

TEST_F(PromptAboveTheWindow, IsRefusedByTheLeastThatItCanHave) {
  rig.inference->count->set_least_prompt_tokens(1001);
  const Answer answer = Send(LongChat(2000));
  EXPECT_EQ(ErrorOf(answer), "400 context_length_exceeded invalid_request_error param=messages");
  EXPECT_NE(answer->body.find("your input has at least 1001 tokens"), std::string::npos)
      << answer->body;
  ASSERT_EQ(rig.inference->counted.size(), 1u);
  EXPECT_TRUE(rig.inference->counted[0].or_least());
  EXPECT_FALSE(rig.inference->counted[0].text_only());
  rig.inference->count->set_least_prompt_tokens(1000);
  PushEvents({Started(), Text("ok"), Finish(), End(1, 1)});
  EXPECT_EQ(Send(LongChat(2000))->status, 200);
}

TEST_F(PromptAboveTheWindow, GoesToTheEngineWhenItFitsOrNobodyCanTell) {
  PushEvents({Started(), Text("ok"), Finish(), End(1, 1)});
  EXPECT_EQ(Send(LongChat(2000))->status, 200) << "no engine can count";
  Count(1000);
  PushEvents({Started(), Text("ok"), Finish(), End(1, 1)});
  EXPECT_EQ(Send(LongChat(2000))->status, 200);
  EXPECT_EQ(rig.inference->counted.size(), 2u);
  PushEvents({Started(), Text("ok"), Finish(), End(1, 1)});
  EXPECT_EQ(Send(LongChat(900))->status, 200);
  EXPECT_EQ(rig.inference->counted.size(), 2u) << "its bytes fit";
}

}  // namespace
}  // namespace tollgate::gateway
