// Runs of completions and embeddings: what is held, counted and charged. See
// docs/design/wire.md 3, 4, decisions 1, 7, 9, 20.
#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

class RequestRunKinds : public RequestRunTest {
 protected:
  void Embed(const std::string& input, int inputs, const std::string& script = "") {
    request_.set_kind(inference::v1::REQUEST_KIND_EMBEDDING);
    request_.set_choices(inputs);
    request_.set_prompt_tokens_bound(20);
    request_.set_prompt_tokens_estimate(6);
    // The hold pays only for the input's bound.
    request_.mutable_hold()->set_authorized_nano_usd(20);
    request_.set_members_json("\"input\":" + input + ",\"x_sim\":{" + script + "}");
  }
  void Complete(const std::string& script, int64_t max_tokens = 10) {
    request_.set_kind(inference::v1::REQUEST_KIND_COMPLETION);
    request_.set_max_tokens(max_tokens);
    request_.set_members_json(R"("prompt":"Once upon","x_sim":{)" + script + "}");
  }
  void AddUnlisted(const std::vector<const test::EngineSim*>& engines) {
    catalog::v1::Snapshot snapshot;
    snapshot.mutable_unlisted()->set_pool("p");
    snapshot.mutable_unlisted()->set_serving(true);
    snapshot.mutable_unlisted()->set_context_window(131'072);
    auto& pool = *snapshot.add_pools();
    pool.set_name("p");
    for (const test::EngineSim* sim : engines) {
      auto& engine = *pool.add_engines();
      engine.set_id("engine-" + std::to_string(pool.engines_size()));
      engine.set_kind(catalog::v1::ENGINE_KIND_VLLM);
      engine.set_base_url(sim->base_url());
    }
    table_.Set(std::make_shared<const RoutingTable>(snapshot, nullptr));
  }
  billing::v1::SettleOp Settled() {
    const auto settles = ledger_.Settles();
    EXPECT_EQ(settles.size(), 1u);
    return settles.empty() ? billing::v1::SettleOp() : settles.back().settle();
  }
};

TEST_F(RequestRunKinds, EmbeddingsAreChargedForTheirInputOnly) {
  Embed(R"(["one","two words"])", 2, R"("embedding_order":"reversed")");
  const Outcome outcome = Run();
  ASSERT_TRUE(outcome.started());
  ASSERT_EQ(outcome.deltas(), 2);
  EXPECT_EQ(outcome.events[1].delta().choice(), 1);
  EXPECT_EQ(outcome.events[2].delta().choice(), 0);
  EXPECT_EQ(outcome.events[1].delta().embedding_json().front(), '"') << "base64 was requested";
  EXPECT_EQ(outcome.end().usage().prompt_tokens(), 3 + 2 * 2);
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 0);
  EXPECT_EQ(outcome.end().charged_nano_usd(), 7);
  EXPECT_FALSE(outcome.end().estimated());
  EXPECT_EQ(Settled().outcome(), billing::v1::OUTCOME_COMPLETED);
  EXPECT_EQ(ledger_.Count(billing::v1::MeterOp::kExtend), 0) << "no output to extend the hold for";
  const auto seen = first_.requests();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].path, "/v1/embeddings");
  EXPECT_EQ(seen[0].header("accept"), "application/json");
}

TEST_F(RequestRunKinds, AnEmbeddingsMissingUsageIsEstimatedAndItsUsageIsBounded) {  // decision 9
  Embed("[1,2,3]", 1, R"("usage":"none")");
  Outcome outcome = Run();
  EXPECT_EQ(outcome.end().usage().prompt_tokens(), 6) << "the gateway's estimate";
  EXPECT_TRUE(outcome.end().estimated());
  ledger_.ops.clear();
  request_.set_request_id(Id::New().ToBytes());
  Embed("[1,2,3]", 1, R"("usage":"absurd")");
  outcome = Run();
  EXPECT_EQ(outcome.end().usage().prompt_tokens(), 20);
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 0);
  EXPECT_EQ(outcome.end().charged_nano_usd(), 20);
}

TEST_F(RequestRunKinds, ABrokenEmbeddingResponseIsNotCharged) {  // decision 7
  // Large enough that vectors are sent before the connection breaks.
  std::string inputs = "\"0\"";
  for (int i = 1; i < 200; ++i) inputs += ",\"" + std::to_string(i) + "\"";
  Embed("[" + inputs + "]", 200, R"("cut_after_tokens":0)");
  request_.set_members_json("\"dimensions\":512," + request_.members_json());
  const Outcome outcome = Run();
  ASSERT_TRUE(outcome.ended());
  EXPECT_GT(outcome.deltas(), 0);
  EXPECT_LT(outcome.deltas(), 200);
  EXPECT_EQ(outcome.end().error().error(), "upstream_error");
  EXPECT_EQ(Settled().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  EXPECT_EQ(journal_->in_use(), 0);
}

TEST_F(RequestRunKinds, AnEmbeddingIsRetriedOnAnotherEngine) {
  UseEngines(2);
  first_.SetDefaultScript(R"({"status":500})");
  Embed("\"x\"", 1);
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.deltas(), 1);
}

TEST_F(RequestRunKinds, AllVectorsOfALargeBatchArrive) {
  std::string inputs = "\"0\"";
  for (int i = 1; i < 2048; ++i) inputs += ",\"" + std::to_string(i) + "\"";
  Embed("[" + inputs + "]", 2048, "");
  EXPECT_EQ(Run().deltas(), 2048);
}

TEST_F(RequestRunKinds, UnseenTokensOfBestOfAreHeldBeforeAndChargedAfter) {  // decision 1
  Complete(R"("tokens":10)");
  request_.set_members_json("\"best_of\":300," + request_.members_json());
  request_.set_samples(300);
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 3000);
  EXPECT_FALSE(outcome.end().estimated()) << "far above the output sent, and still plausible";
  EXPECT_EQ(outcome.end().charged_nano_usd(), 2 + 3000 * 2);
  ASSERT_FALSE(ledger_.ops.empty());
  EXPECT_TRUE(ledger_.ops[0].has_extend()) << "before the engine is called";
}

TEST_F(RequestRunKinds, WithoutCreditForUnseenTokensNoEngineIsCalled) {
  Complete(R"("tokens":10)");
  request_.set_samples(300);
  ledger_.limit_nano_usd = 4000;
  const Outcome outcome = Run();
  EXPECT_EQ(outcome.end().error().error(), "insufficient_credits");
  EXPECT_TRUE(first_.requests().empty());
  EXPECT_EQ(Settled().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
}

// Decision 41: only an explicit answer of the ledger makes it a 402.
TEST_F(RequestRunKinds, UnseenTokensWithoutAnAnswerOfTheLedgerAreNotALackOfCredit) {
  Complete(R"("tokens":10)");
  request_.set_samples(300);
  ledger_.unreachable = true;
  const Outcome silent = Run([&](Loop& loop, RecordingSink&) {
    loop.RunAfter(3'000, [&] { ledger_.unreachable = false; });  // so that the release succeeds
  });
  EXPECT_EQ(silent.end().error().error(), "service_unavailable");
  ledger_.limit_nano_usd = 4000;
  ledger_.limited_by = billing::v1::DENY_REASON_HELD;
  request_.set_request_id(Id::New().ToBytes());
  const Outcome held = Run();
  EXPECT_EQ(held.end().error().error(), "rate_limited");
  EXPECT_EQ(held.end().error().reason(), "held");
  EXPECT_GT(held.end().error().retry_after_ms(), 0);
  EXPECT_TRUE(first_.requests().empty());
}

TEST_F(RequestRunKinds, UnlistedIdsAreForwardedUnchanged) {  // decision 20
  test::EngineSim engine({.models = {"out/side"}});
  ASSERT_TRUE(engine.Start());
  AddUnlisted({&first_, &engine});
  request_.set_model("out/side");
  // The first engine may not know the id; then the other one is tried.
  for (int i = 0; i < 2; ++i) {
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    Complete(R"("tokens":3)");
    const Outcome outcome = Run();
    EXPECT_FALSE(outcome.end().has_error()) << outcome.end().error().error();
    EXPECT_EQ(outcome.end().usage().completion_tokens(), 3);
  }
}

TEST_F(RequestRunKinds, AnUnlistedIdThatNoEngineKnowsIsNotFound) {  // decision 20
  AddUnlisted({&first_, &second_});
  request_.set_model("no/where");
  Complete("");
  const Outcome outcome = Run();
  EXPECT_EQ(outcome.end().error().error(), "model_not_found");
  EXPECT_EQ(outcome.end().error().retry_after_ms(), 0);
  EXPECT_EQ(first_.requests().size() + second_.requests().size(), 2u);
  EXPECT_EQ(Settled().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
}

TEST_F(RequestRunKinds, OnlyCompletionsMayUseUnlistedIds) {
  AddUnlisted({&first_});
  request_.set_model("sim/model");
  Script("");
  EXPECT_EQ(Run().end().error().error(), "model_not_serving");
  EXPECT_TRUE(first_.requests().empty());
}

}  // namespace
}  // namespace tollgate::inference_router
