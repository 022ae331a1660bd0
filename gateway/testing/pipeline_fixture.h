// Fixture for tests that send whole requests.
#pragma once

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "gateway/surfaces/chat_completions/chat_surface.h"
#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway::testing {

inline std::string Body(const std::string& more = "") {
  return R"({"model":"ns/model","messages":[{"role":"user","content":"hi"}])" +
         (more.empty() ? "" : "," + more) + "}";
}

class PipelineFixture : public ::testing::Test {
 protected:
  using Answer = std::shared_ptr<FakeExchange>;

  Answer Send(const std::string& body = Body(), std::function<void(FakeExchange&)> prepare = {}) {
    return rig.Run(ChatSurface(), rig.ChatRequest(body), std::move(prepare));
  }
  void PushEvents(std::vector<pb::Event> batch) {
    rig.RunOnLoop([&](Loop&) { rig.inference->script->Push(std::move(batch)); });
  }
  // "401 invalid_api_key authentication_error param=… retry=…"
  static std::string ErrorOf(const Answer& answer) {
    const auto document = json::Document::ParseView(answer->body);
    if (!document) return "not JSON: " + answer->body;
    const json::Value error = document->root().Find("error");
    std::string summary = std::to_string(answer->status) + " " + error.Find("code").string() + " " +
                          error.Find("type").string();
    if (error.Find("param")) summary += " param=" + error.Find("param").string();
    if (!answer->header("retry-after").empty())
      summary += " retry=" + answer->header("retry-after");
    EXPECT_EQ(answer->header("content-type"), "application/json");
    EXPECT_EQ(answer->answers, 1);
    return summary;
  }
  // "reason", or "reason key workspace" if the key is known, as in the access log.
  static std::string WhyOf(const Answer& answer) {
    const RequestFailure& failure = FailureOf(answer->request());
    std::string why(NameOf(failure.reason));
    if (!failure.key_id.empty()) why += " " + failure.key_id + " " + failure.workspace_id;
    EXPECT_EQ(answer->body.find("\"reason\""), std::string::npos) << answer->body;
    return why;
  }
  // Every slot was refunded.
  void ExpectAllRefunded() {
    ASSERT_EQ(rig.limiter->released.size(), rig.limiter->acquired.size());
    for (const auto& item : rig.limiter->released) EXPECT_TRUE(item.refund());
    ExpectNoSlots();
  }
  void ExpectNoSlots() { EXPECT_EQ(rig.worker->slots->size(), 0u); }

  Rig rig;
};

}  // namespace tollgate::gateway::testing
