// `max_tokens: 0`: the response has the prompt's token count and calls no engine. See decision 30.
#include "gateway/pipeline/answer/answer_without_engine.h"

#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

class MaxTokensZero : public PipelineFixture {
 protected:
  Answer Ask(const std::string& more = "") { return Send(Body(R"("max_tokens":0)" + more)); }
  static json::Value Usage(const json::Document& document) { return document.root().Find("usage"); }
};

TEST_F(MaxTokensZero, UsageIsTheCountOfTheEngine) {
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

TEST_F(MaxTokensZero, WithoutATokenizerUsageIsEstimated) {
  const Answer no_tokenizer = Ask();
  rig.inference->count = Unavailable("no router");
  const Answer no_router = Ask();
  EXPECT_EQ(no_tokenizer->status, 200);
  EXPECT_EQ(no_router->status, 200);
  EXPECT_NE(no_tokenizer->body.find("\"prompt_tokens\":4,"), std::string::npos)
      << no_tokenizer->body;
  EXPECT_NE(no_router->body.find("\"prompt_tokens\":4,"), std::string::npos) << no_router->body;
}

TEST_F(MaxTokensZero, KeepsTheSlotWhileCountingAndChargesNothing) {
  bool held = false;
  rig.inference->on_count = [&] { held = rig.worker->slots->size() == 1; };
  Ask();
  EXPECT_TRUE(held);
  ASSERT_EQ(rig.billing->authorized.size(), 1u);
  EXPECT_TRUE(rig.billing->authorized[0].check_only()) << "no hold, so that it writes nothing";
  EXPECT_TRUE(rig.billing->voided.empty());
  ASSERT_EQ(rig.limiter->released.size(), 1u);
  EXPECT_FALSE(rig.limiter->released[0].refund());
  EXPECT_EQ(rig.limiter->released[0].actual_tokens(), 0);
  ExpectNoSlots();
}

TEST_F(MaxTokensZero, PromptsAboveTheWindowAreRefused) {  // decisions 18 and 32
  rig.inference->count->set_counted(true);
  rig.inference->count->set_prompt_tokens(1000);
  EXPECT_EQ(Ask()->status, 200) << "as large as the window";
  rig.inference->count->set_prompt_tokens(1001);
  for (const char* more : {"", R"(,"stream":true)"}) {
    const Answer answer = Ask(more);
    EXPECT_EQ(ErrorOf(answer), "400 context_length_exceeded invalid_request_error param=messages");
    EXPECT_NE(answer->body.find("maximum context length is 1000 tokens"), std::string::npos)
        << answer->body;
    EXPECT_TRUE(rig.limiter->released.back().refund());
  }
  EXPECT_TRUE(rig.billing->voided.empty());
  ExpectNoSlots();
}

TEST_F(MaxTokensZero, PromptsWithImagesAreEstimated) {
  rig.snapshot.mutable_models(0)->add_capabilities(catalog::v1::CAPABILITY_VISION);
  rig.snapshot.mutable_models(0)->set_context_window(100'000);
  rig.Publish();
  rig.inference->count->set_counted(true);
  rig.inference->count->set_prompt_tokens(1);
  const Answer answer = Send(
      R"({"model":"ns/model","max_tokens":0,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]})");
  EXPECT_EQ(answer->status, 200) << answer->body;
  EXPECT_TRUE(rig.inference->counted.empty()) << "tokenizers cannot count images";
}

}  // namespace
}  // namespace tollgate::gateway
