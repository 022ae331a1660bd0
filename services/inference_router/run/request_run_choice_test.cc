// Which engine a request gets, and how it is counted there (ADR 0029, ADR 0032).
#include <gtest/gtest.h>

#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

class RequestRunChoiceTest : public RequestRunTest {
 protected:
  RequestRunChoiceTest() { UseEngines(2); }
  EngineState& engine(size_t number) { return *table_.Get()->engines()[number]; }
  // Adds the next turn of a conversation.
  void Say(const std::string& text) {
    if (!messages_.empty()) messages_ += R"(,{"role":"assistant","content":"yes"},)";
    messages_ += R"({"role":"user","content":")" + text + R"("})";
    request_.set_members_json(R"("messages":[)" + messages_ + R"(],"x_sim":{"tokens":3})");
    request_.set_request_id(Id::New().ToBytes());
  }
  // Makes the second engine busy, which would be selected of two idle ones.
  void RunOnTheFirst() {
    ASSERT_TRUE(engine(1).TryEnter(100'000));
    Run();
    engine(1).Leave(100'000);
    ASSERT_EQ(first_.totals().requests, 1);
  }
  std::string messages_;
};

TEST_F(RequestRunChoiceTest, TheNextTurnsOfAConversationGoToTheSameEngine) {
  Say(std::string(4'000, 'x'));
  RunOnTheFirst();
  for (int turn = 0; turn < 3; ++turn) {
    Say("and now?");
    EXPECT_FALSE(Run().end().has_error());
  }
  EXPECT_EQ(first_.totals().requests, 4);
  EXPECT_EQ(second_.totals().requests, 0);
}

// The caches are separate, and nobody learns from a choice what others have sent.
TEST_F(RequestRunChoiceTest, TheSamePromptOfAnotherWorkspaceIsANewOne) {
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

TEST_F(RequestRunChoiceTest, ASessionOfAWorkspaceStaysOnItsEngineWhateverItSays) {
  request_.set_session("conversation-1");
  Say("hello");
  RunOnTheFirst();
  for (const char* text : {"compacted", "rewritten", "once more"}) {
    messages_.clear();
    Say(text);
    Run();
  }
  EXPECT_EQ(first_.totals().requests, 4);
  EXPECT_EQ(second_.totals().requests, 0);
}

// Guessing a name reveals nothing about other workspaces, and models do not share caches.
TEST_F(RequestRunChoiceTest, ANameOfASessionMeansSomethingInItsWorkspaceOnly) {
  request_.set_session("conversation-1");
  Say("hello");
  RunOnTheFirst();
  const auto engine_of = [this](const std::string& workspace, const std::string& session) {
    request_.set_workspace_id(workspace);
    request_.set_session(session);
    request_.set_explain_choice(true);
    messages_.clear();
    Say("hello");
    const Outcome outcome = Run();
    return outcome.started() ? outcome.events[0].started().choice().reason() : "";
  };
  EXPECT_EQ(engine_of("other", "conversation-1"), "load");
  EXPECT_EQ(engine_of("ws", "conversation-2"), "load");
  EXPECT_EQ(engine_of("ws", ""), "load");
  EXPECT_EQ(engine_of("ws", "conversation-1"), "session");
}

TEST_F(RequestRunChoiceTest, TheChoiceIsExplainedToThoseWhoMayKnow) {
  Say(std::string(4'000, 'x'));
  RunOnTheFirst();
  ASSERT_TRUE(engine(0).TryEnter(77));
  ASSERT_TRUE(engine(1).TryEnter(77));
  request_.set_explain_choice(true);
  Say("and now?");
  const Outcome outcome = Run();
  ASSERT_TRUE(outcome.started());
  const inference::v1::EngineChoice& choice = outcome.events[0].started().choice();
  EXPECT_EQ(choice.engine_id(), "first");
  EXPECT_EQ(choice.reason(), "prefix");
  EXPECT_EQ(choice.outstanding_tokens(), 77);
  EXPECT_EQ(choice.retries(), 0);
  EXPECT_EQ(choice.waited_us(), 0);
  EXPECT_FALSE(outcome.end().has_choice()) << "said once";
  engine(0).Leave(77);
  engine(1).Leave(77);
}

TEST_F(RequestRunChoiceTest, WithoutBeingAskedNoEngineIsNamed) {
  Say("hello");
  const Outcome good = Run();
  ASSERT_TRUE(good.started());
  EXPECT_FALSE(good.events[0].started().has_choice());
  Script(R"("status":500)");
  request_.set_request_id(Id::New().ToBytes());
  const Outcome bad = Run();
  EXPECT_TRUE(bad.end().has_error());
  for (const auto& outcome : {good, bad}) {
    EXPECT_FALSE(outcome.end().has_choice());
    for (const auto& event : outcome.events) {
      EXPECT_EQ(event.SerializeAsString().find("first"), std::string::npos);
      EXPECT_EQ(event.SerializeAsString().find("second"), std::string::npos);
    }
  }
}

TEST_F(RequestRunChoiceTest, AFailureSaysWhichEngineWasAskedLast) {
  Script(R"("status":503)");
  request_.set_explain_choice(true);
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.started());
  ASSERT_TRUE(outcome.end().has_choice());
  EXPECT_EQ(outcome.end().choice().retries(), 1);
  EXPECT_EQ(outcome.end().choice().reason(), "only") << "the other one has failed";
  EXPECT_EQ(first_.totals().requests + second_.totals().requests, 2);
}

TEST_F(RequestRunChoiceTest, TheWorkOfARequestIsCountedUntilItIsDone) {
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

TEST_F(RequestRunChoiceTest, ARequestThatFailsLeavesNoWork) {
  Script(R"("status":500)");
  EXPECT_TRUE(Run().end().has_error());
  for (const auto& engine : table_.Get()->engines()) {
    EXPECT_EQ(engine->work(), 0);
    EXPECT_EQ(engine->running(), 0);
  }
}

}  // namespace
}  // namespace tollgate::inference_router
