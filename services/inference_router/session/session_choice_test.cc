// Which engine a request gets, and what it counts there (ADR 0029).
#include <gtest/gtest.h>

#include "services/inference_router/session/testing/session_fixture.h"

namespace tollgate::inference_router {
namespace {

class SessionChoiceTest : public SessionTest {
 protected:
  SessionChoiceTest() { UseEngines(2); }
  EngineState& engine(size_t number) { return *table_.Get()->engines()[number]; }
  // A conversation's next turn.
  void Say(const std::string& text) {
    if (!messages_.empty()) messages_ += R"(,{"role":"assistant","content":"yes"},)";
    messages_ += R"({"role":"user","content":")" + text + R"("})";
    request_.set_members_json(R"("messages":[)" + messages_ + R"(],"x_sim":{"tokens":3})");
    request_.set_request_id(Id::New().ToBytes());
  }
  // The engine with least to do, of two that have nothing to do, is the second.
  void RunOnTheFirst() {
    ASSERT_TRUE(engine(1).TryEnter(100'000));
    Run();
    engine(1).Leave(100'000);
    ASSERT_EQ(first_.totals().requests, 1);
  }
  std::string messages_;
};

TEST_F(SessionChoiceTest, TheNextTurnsOfAConversationGoToTheSameEngine) {
  Say(std::string(4'000, 'x'));
  RunOnTheFirst();
  for (int turn = 0; turn < 3; ++turn) {
    Say("and now?");
    EXPECT_FALSE(Run().end().has_error());
  }
  EXPECT_EQ(first_.totals().requests, 4);
  EXPECT_EQ(second_.totals().requests, 0);
}

// Their caches are separate, and nobody learns from a choice what others have sent.
TEST_F(SessionChoiceTest, TheSamePromptOfAnotherWorkspaceIsANewOne) {
  Say(std::string(4'000, 'x'));
  RunOnTheFirst();
  request_.set_workspace_id("other");
  Run();
  EXPECT_EQ(second_.totals().requests, 1);
  request_.set_workspace_id("ws");
  request_.set_cache_salt("own");
  Run();
  EXPECT_EQ(second_.totals().requests, 2);
  request_.clear_cache_salt();
  Run();
  EXPECT_EQ(first_.totals().requests, 2) << "the first workspace, without a salt";
}

TEST_F(SessionChoiceTest, TheWorkOfARequestIsCountedUntilItIsDone) {
  UseEngines(1);
  request_.set_prompt_tokens_estimate(1'000);
  request_.set_max_tokens(100);
  Script(R"("tokens":60,"token_ms":1)");
  std::vector<int64_t> work;
  const Outcome outcome = Run([&](Loop&, RecordingSink& sink) {
    sink.on_event = [&](const inference::v1::Event& event) {
      if (event.has_delta()) work.push_back(engine(0).work());
    };
  });
  EXPECT_FALSE(outcome.end().has_error());
  ASSERT_GE(work.size(), 2u);
  EXPECT_LE(work.front(), 99 * kOutputWeight) << "the prompt has been read";
  EXPECT_GT(work.front(), work.back());
  EXPECT_GT(work.back(), 0);
  EXPECT_EQ(engine(0).work(), 0);
  EXPECT_EQ(engine(0).running(), 0);
}

TEST_F(SessionChoiceTest, ARequestThatFailsLeavesNoWork) {
  Script(R"("status":500)");
  EXPECT_TRUE(Run().end().has_error());
  for (const auto& engine : table_.Get()->engines()) {
    EXPECT_EQ(engine->work(), 0);
    EXPECT_EQ(engine->running(), 0);
  }
}

}  // namespace
}  // namespace tollgate::inference_router
