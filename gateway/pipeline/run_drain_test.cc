// Requests that are still running when the time of a drain is over: each ends as a failure of its
// surface, and is charged as one (decisions 7, 23, 52).
#include "gateway/surfaces/messages/messages_surface.h"
#include "gateway/surfaces/responses/responses_surface.h"
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

class RunDrain : public PipelineFixture {
 protected:
  // Ends the drain when the caller has the first part of the answer.
  static void EndDrainAfterFirstWrite(FakeExchange& exchange) {
    exchange.on_write = [&exchange] {
      exchange.on_write = {};
      exchange.loop().Post([&exchange] { exchange.EndDrain(); });
    };
  }
  Answer Stream(const Surface& surface, const std::string& input) {
    PushEvents({Started(), Text("a")});
    return rig.Run(
        surface,
        rig.ChatRequest(R"({"model":"ns/model","stream":true,"max_tokens":9,)" + input + "}"),
        EndDrainAfterFirstWrite);
  }
  void ExpectEndsWithFailure(const Answer& answer, const std::string& event) {
    ASSERT_FALSE(answer->writes.empty());
    EXPECT_EQ(answer->status, 200);
    EXPECT_NE(answer->writes.back().find(event), std::string::npos) << answer->writes.back();
    EXPECT_TRUE(answer->ended) << "the stream is complete as HTTP";
    EXPECT_TRUE(rig.inference->script->cancelled);
    EXPECT_TRUE(rig.billing->voided.empty()) << "the router settles what was delivered";
    ExpectNoSlots();
  }
};

constexpr char kMessages[] = R"("messages":[{"role":"user","content":"hi"}])";

TEST_F(RunDrain, AChatStreamEndsWithAnErrorEvent) {
  const Answer answer = Stream(ChatSurface(), kMessages);
  ExpectEndsWithFailure(answer, R"(data: {"error":{)");
  EXPECT_EQ(answer->body.find("[DONE]"), std::string::npos);
  EXPECT_EQ(FailureOf(answer->request()).reason, Reason::kStopping);
}

TEST_F(RunDrain, AMessagesStreamEndsWithAnErrorEvent) {
  const Answer answer = Stream(MessagesSurface(), kMessages);
  ExpectEndsWithFailure(answer, "event: error\n");
  EXPECT_EQ(answer->body.find("message_stop"), std::string::npos);
}

TEST_F(RunDrain, AResponsesStreamEndsAsFailed) {
  const Answer answer = Stream(ResponsesSurface(), R"("input":"hi")");
  ExpectEndsWithFailure(answer, "event: response.failed\n");
  EXPECT_EQ(answer->body.find("response.completed"), std::string::npos);
}

TEST_F(RunDrain, WithoutOutputItIsA503ThatCostsNothing) {
  for (const char* more : {R"("stream":true)", R"("stream":false)"}) {
    FakeExchange* caller = nullptr;
    std::function<void()> end_once_started = [&] {
      if (!rig.inference->started.empty()) return caller->EndDrain();
      rig.worker->loop.RunAfter(1, end_once_started);
    };
    const Answer answer = Send(Body(more), [&](FakeExchange& exchange) {
      caller = &exchange;
      rig.worker->loop.RunAfter(1, end_once_started);
    });
    EXPECT_EQ(ErrorOf(answer), "503 service_unavailable service_unavailable retry=1") << more;
    EXPECT_EQ(WhyOf(answer), "stopping " + rig.key.key_id() + " ws1") << more;
    ASSERT_EQ(rig.billing->voided.size(), 1u) << more;
    EXPECT_TRUE(rig.billing->voided[0].refused()) << more;
    ExpectAllRefunded();
    rig.billing->voided.clear();
    rig.inference->started.clear();
    rig.RunOnLoop([&](Loop&) { rig.inference->script->cancelled = false; });
  }
}

}  // namespace
}  // namespace tollgate::gateway
