#include "gateway/pipeline/checks/session_name.h"

#include <gtest/gtest.h>

#include "gateway/surfaces/messages/messages_surface.h"
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

std::string OfBody(const std::string& members) {
  const auto document = json::Document::Parse("{" + members + "}");
  return document ? SessionNameOf(document->root()) : "not JSON";
}

TEST(SessionName, TheMemberThatMeansASessionGoesBeforeThoseThatMeanAUser) {
  std::string members = R"("safety_identifier":"s")";
  EXPECT_EQ(OfBody(members), "s");
  members += R"(,"metadata":{"user_id":"m","other":1})";
  EXPECT_EQ(OfBody(members), "m");
  members += R"(,"user":"u")";
  EXPECT_EQ(OfBody(members), "u");
  members += R"(,"prompt_cache_key":"p")";
  EXPECT_EQ(OfBody(members), "p");
  members += R"(,"session_\u0069d":"i\u0064")";
  EXPECT_EQ(OfBody(members), "id");
  EXPECT_EQ(OfBody(R"("messages":[{"user":"x"}])"), "") << "only of the request itself";
}

TEST(SessionName, WhatIsNoNameIsNoErrorAndTheNextMemberCounts) {
  const std::string longest(kMaxSessionName, 'a');
  EXPECT_EQ(OfBody(R"("user":")" + longest + "\""), longest);
  for (const std::string& none : {std::string("null"), std::string("7"), std::string("\"\""),
                                  std::string("[\"a\"]"), "\"" + longest + "b\""}) {
    EXPECT_EQ(OfBody(R"("session_id":)" + none + R"(,"user":"u")"), "u") << none;
  }
  EXPECT_EQ(OfBody(R"("metadata":{"user_id":{"user_id":"x"}})"), "");
}

using SessionNameRun = PipelineFixture;

TEST_F(SessionNameRun, GoesToTheRouterAndNotToTheEngine) {
  PushEvents({Started(), Text("ok"), Finish(), End(5, 2)});
  EXPECT_EQ(Send(Body(R"("prompt_cache_key":"conversation-1")"))->status, 200);
  ASSERT_EQ(rig.inference->started.size(), 1u);
  EXPECT_EQ(rig.inference->started[0].session(), "conversation-1");
  EXPECT_EQ(rig.inference->started[0].members_json().find("conversation-1"), std::string::npos);
}

TEST_F(SessionNameRun, TheHeaderGoesBeforeTheBody) {
  HttpRequest request = rig.ChatRequest(Body(R"("session_id":"of the body")"));
  request.headers.emplace_back("x-session-affinity", "second");
  request.headers.emplace_back("x-session-id", std::string(kMaxSessionName + 1, 'a'));
  PushEvents({Started(), Text("ok"), Finish(), End(5, 2)});
  EXPECT_EQ(rig.Run(ChatSurface(), request)->status, 200);
  ASSERT_EQ(rig.inference->started.size(), 1u);
  EXPECT_EQ(rig.inference->started[0].session(), "second") << "the first is too long for a name";
}

TEST_F(SessionNameRun, OfMessagesTheUserOfItsMetadataIsIt) {
  PushEvents({Started(), Text("ok"), Finish(), End(5, 2)});
  rig.Run(MessagesSurface(),
          rig.ChatRequest(Body(R"("max_tokens":9,"metadata":{"user_id":"device-session"})")));
  ASSERT_EQ(rig.inference->started.size(), 1u);
  EXPECT_EQ(rig.inference->started[0].session(), "device-session");
}

}  // namespace
}  // namespace tollgate::gateway
