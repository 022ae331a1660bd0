// Checks of the head alone: a caller without a valid credential is refused before the body
// (decision 46), with the same error as in the pipeline.
#include "gateway/pipeline/judge_head.h"

#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

class JudgeHeadTest : public PipelineFixture {
 protected:
  struct Judged {
    int status = 200;        // 200: accepted
    bool looked_up = false;  // auth was asked
    bool waited = false;     // the verdict was not known at once
  };
  Judged Judge(const std::string& authorization, const std::string& name = "authorization") {
    HttpRequest request = rig.ChatRequest("");
    request.headers[0] = {name, authorization};
    return Judge(std::move(request));
  }
  Judged Judge(HttpRequest request) {
    Judged judged;
    const int calls = rig.auth->calls;
    tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop&) -> Task<int> {
      http::HeadVerdict verdict = JudgeHead(*rig.worker, rig.endpoint, request);
      std::optional<HttpResponse> refusal = std::move(verdict.refusal);
      if (verdict.pending) {
        judged.waited = true;
        refusal = co_await std::move(*verdict.pending);
      }
      if (refusal) judged.status = refusal->status;
      co_return 0;
    });
    judged.looked_up = rig.auth->calls > calls;
    return judged;
  }
  std::string Good() const { return "Bearer " + rig.key_text; }
};

TEST_F(JudgeHeadTest, ACredentialWithoutTheFormOfAKeyNeedsNoLookup) {
  std::string flipped = Good();
  flipped[20] = flipped[20] == 'a' ? 'b' : 'a';
  for (const std::string& text : {std::string(), std::string("Bearer"), std::string("Basic dTpw"),
                                  flipped, "Bearer " + std::string(10'000, 'a')}) {
    const Judged judged = Judge(text);
    EXPECT_EQ(judged.status, 401) << text;
    EXPECT_FALSE(judged.waited) << text;
    EXPECT_FALSE(judged.looked_up) << text;
  }
  EXPECT_EQ(Judge(rig.key_text, "x-api-key").status, 401);
}

TEST_F(JudgeHeadTest, AnUnknownKeyIsLookedUpOnce) {
  const std::string made_up = "Bearer " + MakeKey("tollgate").text;
  const Judged first = Judge(made_up);
  EXPECT_EQ(first.status, 401);
  EXPECT_TRUE(first.waited);
  EXPECT_TRUE(first.looked_up);
  const Judged second = Judge(made_up);
  EXPECT_EQ(second.status, 401);
  EXPECT_FALSE(second.waited);
  EXPECT_FALSE(second.looked_up);
}

TEST_F(JudgeHeadTest, TheRequestFindsTheKeyInTheCache) {
  rig.auth->version = 1;
  EXPECT_EQ(Judge(Good()).status, 200);
  const int calls = rig.auth->calls;
  EXPECT_EQ(calls, 1);
  // The change stream is live: from here on the cache answers at once.
  rig.RunOnLoop([&](Loop&) { rig.worker->keys->OnChanges({}); });
  EXPECT_FALSE(Judge(Good()).waited);
  PushEvents({Failed("service_unavailable")});
  EXPECT_EQ(Send()->status, 503);
  EXPECT_EQ(rig.auth->calls, calls);
  EXPECT_EQ(rig.limiter->acquired.size(), 1u) << "only the pipeline takes from limits";
}

TEST_F(JudgeHeadTest, KeyStatesAreJudged) {
  rig.auth->version = 1;
  rig.key.set_state(auth::v1::KEY_STATE_DISABLED);
  rig.Publish();
  EXPECT_EQ(Judge(Good()).status, 403);
  rig.RunOnLoop([&](Loop&) { rig.worker->keys->OnChanges({}); });
  const Judged cached = Judge(Good());
  EXPECT_EQ(cached.status, 403);
  EXPECT_FALSE(cached.waited);
}

TEST_F(JudgeHeadTest, AnAuthOutageIs503) {  // decision 14
  rig.auth->down = true;
  EXPECT_EQ(Judge(Good()).status, 503);
}

TEST_F(JudgeHeadTest, PublicEndpointsTakeNoMoreThanAShortBody) {
  rig.endpoint.credential = CredentialRule::kOptionalBearer;
  const auto with = [&](const char* name, const char* value) {
    HttpRequest request;
    request.headers = {{name, value}};
    return Judge(std::move(request)).status;
  };
  EXPECT_EQ(with("content-length", "2"), 200);
  EXPECT_EQ(with("content-length", "4096"), 200);
  EXPECT_EQ(with("content-length", "4097"), 400);
  EXPECT_EQ(with("transfer-encoding", "chunked"), 400);
}

}  // namespace
}  // namespace tollgate::gateway
