// The pipeline for completions and embeddings: capabilities, ids outside the catalog, holds. See
// docs/contract.md "Endpoints", decisions 16, 20, 21, 30.
#include "gateway/pipeline/run.h"
#include "gateway/surfaces/completions/completions_surface.h"
#include "gateway/surfaces/embeddings/embeddings_surface.h"
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: fakes and event builders

class RunOtherKinds : public PipelineFixture {
 protected:
  RunOtherKinds() {
    AddModel("ns/text", catalog::v1::CAPABILITY_COMPLETION);
    AddModel("ns/embed", catalog::v1::CAPABILITY_EMBEDDING);
    AddModel("ns/dual", catalog::v1::CAPABILITY_CHAT)
        .add_capabilities(catalog::v1::CAPABILITY_EMBEDDING);
    rig.Publish();
  }
  catalog::v1::Model& AddModel(const std::string& id, catalog::v1::Capability capability) {
    catalog::v1::Model& model = *rig.snapshot.add_models();
    model = rig.snapshot.models(0);
    model.set_id(id);
    model.clear_capabilities();
    model.add_capabilities(capability);
    return model;
  }
  void ConfigureUnlisted() {
    catalog::v1::Model& unlisted = *rig.snapshot.mutable_unlisted();
    unlisted.set_context_window(500);
    unlisted.set_max_output_tokens(500);
    unlisted.set_serving(true);
    unlisted.add_capabilities(catalog::v1::CAPABILITY_COMPLETION);
    unlisted.mutable_price()->set_input_pico_usd(50);
    unlisted.mutable_price()->set_output_pico_usd(60);
    rig.Publish();
  }
  Answer Complete(const std::string& model, const std::string& more = "") {
    return rig.Run(CompletionsSurface(),
                   rig.ChatRequest(R"({"model":")" + model + R"(","prompt":"hi")" + more + "}"));
  }
  Answer Embed(const std::string& model, const std::string& more = "") {
    return rig.Run(EmbeddingsSurface(),
                   rig.ChatRequest(R"({"model":")" + model + R"(","input":"hi")" + more + "}"));
  }
};

TEST_F(RunOtherKinds, CompletionsNeedACompletionModel) {
  for (const char* model : {"ns/model", "ns/embed", "ns/dual"}) {
    const Answer answer = Complete(model);
    EXPECT_EQ(ErrorOf(answer), "400 bad_request invalid_request_error param=model") << model;
    EXPECT_NE(answer->body.find("/v1/chat/completions"), std::string::npos) << answer->body;
  }
  EXPECT_TRUE(rig.inference->started.empty());
  PushEvents({Started(), Text("x"), Finish(), End(1, 1)});
  EXPECT_EQ(Complete("ns/text")->status, 200);
  EXPECT_EQ(rig.inference->started.at(0).kind(), pb::REQUEST_KIND_COMPLETION);
  EXPECT_EQ(rig.inference->started.at(0).max_tokens(), 16);
}

TEST_F(RunOtherKinds, EmbeddingsNeedAnEmbeddingModel) {
  for (const char* model : {"ns/model", "ns/text"}) {
    EXPECT_EQ(ErrorOf(Embed(model)), "400 bad_request invalid_request_error param=model");
  }
  for (const char* model : {"ns/embed", "ns/dual"}) {
    pb::Event vector;
    vector.mutable_delta()->set_embedding_json("[1]");
    PushEvents({Started(), vector, End(5, 0)});
    const Answer answer = Embed(model);
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_NE(answer->body.find(R"("usage":{"prompt_tokens":5,"total_tokens":5})"),
              std::string::npos);
  }
}

TEST_F(RunOtherKinds, EmbeddingsHoldTheirInputOnly) {
  PushEvents({Started(), End(5, 0)});
  Embed("ns/embed");
  ASSERT_EQ(rig.billing->authorized.size(), 1u);
  EXPECT_EQ(rig.billing->authorized[0].output_tokens_bound(), 0);
  EXPECT_EQ(rig.billing->authorized[0].prompt_tokens_bound(), 2 + 16);
  EXPECT_EQ(rig.inference->started.at(0).max_tokens(), 0);
  EXPECT_EQ(rig.inference->started.at(0).choices(), 1);
  EXPECT_EQ(rig.inference->started.at(0).prompt_tokens_estimate(), 4);
}

TEST_F(RunOtherKinds, BestOfIsSentToTheRouter) {
  PushEvents({Started(), Text("x"), Finish(), End(1, 1)});
  Complete("ns/text", R"(,"n":2,"best_of":5)");
  EXPECT_EQ(rig.inference->started.at(0).choices(), 2);
  EXPECT_EQ(rig.inference->started.at(0).samples(), 5);
  EXPECT_EQ(rig.billing->authorized.at(0).output_tokens_bound(), 5 * 16);
}

TEST_F(RunOtherKinds, UnlistedIdsAreNotFoundByDefault) {  // decision 20
  EXPECT_EQ(ErrorOf(Complete("other/model")), "404 model_unavailable not_found_error");
}

TEST_F(RunOtherKinds, ConfiguredUnlistedIdsAreForwardedAtTheirPrice) {  // decision 20
  ConfigureUnlisted();
  for (const char* id : {"other/model", "gpt2", "a:b@c"}) {
    PushEvents({Started(), Text("x"), Finish(), End(1, 1)});
    const Answer answer = Complete(id);
    EXPECT_EQ(answer->status, 200) << answer->body;
    EXPECT_NE(answer->body.find("\"model\":\"" + std::string(id) + "\""), std::string::npos);
    EXPECT_EQ(rig.inference->started.back().model(), id);
    EXPECT_EQ(rig.inference->started.back().hold().price().input_pico_usd(), 50);
    EXPECT_EQ(rig.billing->authorized.back().model(), id);
    EXPECT_EQ(rig.billing->authorized.back().price().output_pico_usd(), 60);
  }
}

TEST_F(RunOtherKinds, IdsThatAreNeverUnlistedModels) {
  ConfigureUnlisted();
  const std::string not_found = "404 model_unavailable not_found_error";
  // Legacy ids (decision 21), malformed ids, and endpoints other than completions.
  EXPECT_EQ(ErrorOf(Complete("tollgate/model")), not_found);
  EXPECT_EQ(ErrorOf(Complete("")), not_found);
  EXPECT_EQ(ErrorOf(Complete("a b")), not_found);
  EXPECT_EQ(ErrorOf(Complete("a\\u0001b")), not_found);
  EXPECT_EQ(ErrorOf(Complete(std::string(121, 'a'))), not_found);
  EXPECT_EQ(ErrorOf(Embed("other/model")), not_found);
  EXPECT_EQ(ErrorOf(rig.Run(ChatSurface(),
                            rig.ChatRequest(R"({"model":"other/model","messages":[{"role":"user",)"
                                            R"("content":"x"}]})"))),
            not_found);
  EXPECT_TRUE(rig.inference->started.empty());
}

TEST_F(RunOtherKinds, AllowListsApplyToUnlistedIds) {
  ConfigureUnlisted();
  rig.key.add_allowed_models("ns/text");
  rig.Publish();
  EXPECT_EQ(ErrorOf(Complete("other/model")), "403 model_blocked permission_error");
  rig.key.add_allowed_models("other/model");
  rig.Publish();
  PushEvents({Started(), Text("x"), Finish(), End(1, 1)});
  EXPECT_EQ(Complete("other/model")->status, 200);
}

TEST_F(RunOtherKinds, CatalogModelsKeepTheirRules) {
  ConfigureUnlisted();
  EXPECT_EQ(ErrorOf(Complete("ns/model")), "400 bad_request invalid_request_error param=model");
  rig.snapshot.mutable_models(1)->set_workspace_id("another workspace");
  rig.Publish();
  EXPECT_EQ(ErrorOf(Complete("ns/text")), "401 invalid_api_key authentication_error");
}

TEST_F(RunOtherKinds, MaxTokensZeroEchoesThePrompt) {  // decision 30
  const Answer answer = Complete("ns/text", R"(,"max_tokens":0,"echo":true)");
  EXPECT_EQ(answer->status, 200);
  EXPECT_NE(answer->body.find(R"("text":"hi","logprobs":null,"finish_reason":"length")"),
            std::string::npos)
      << answer->body;
  EXPECT_TRUE(rig.inference->started.empty());
  EXPECT_TRUE(rig.billing->voided.empty());
}

}  // namespace
}  // namespace tollgate::gateway
