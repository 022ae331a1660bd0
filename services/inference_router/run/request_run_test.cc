#include "services/inference_router/run/testing/request_run_fixture.h"
#include "tests/support/json.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::FINISH_REASON_LENGTH;
using inference::v1::FINISH_REASON_STOP;

// The settlement of the request. Fails the test unless there is exactly one.
billing::v1::SettleOp OnlySettle(const LedgerScript& ledger) {
  const auto settles = ledger.Settles();
  EXPECT_EQ(settles.size(), 1u);
  return settles.empty() ? billing::v1::SettleOp() : settles.back().settle();
}

TEST_F(RequestRunTest, StreamsCountsAndSettlesOnce) {
  Script(R"("tokens":20)");
  const Outcome outcome = Run();
  ASSERT_TRUE(outcome.started());
  ASSERT_TRUE(outcome.ended());
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.finish(), FINISH_REASON_STOP);
  EXPECT_FALSE(outcome.text().empty());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 20);
  const auto seen = first_.requests();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(outcome.end().usage().prompt_tokens(), seen[0].prompt_tokens);
  EXPECT_EQ(outcome.events[0].started().prompt_tokens(), seen[0].prompt_tokens);
  EXPECT_FALSE(outcome.end().estimated());
  const auto settle = OnlySettle(ledger_);
  EXPECT_EQ(settle.outcome(), billing::v1::OUTCOME_COMPLETED);
  EXPECT_EQ(settle.usage().completion_tokens(), 20);
  EXPECT_EQ(settle.engine_id(), "first");
  EXPECT_EQ(outcome.end().charged_nano_usd(), seen[0].prompt_tokens + 20 * 2);
  EXPECT_EQ(journal_->in_use(), 0);
}

// Decision 26: an engine may index requests by this header.
TEST_F(RequestRunTest, RequestsWithTheSameXRequestIdHaveDifferentIdsAtTheEngine) {
  request_.set_x_request_id("mine");
  std::vector<std::string> ids;
  for (int i = 0; i < 2; ++i) {
    request_.set_request_id(Id::New().ToBytes());
    Script(R"("tokens":1)");
    Run();
    ids.push_back(first_.requests().back().header("x-request-id"));
    EXPECT_EQ(ids.back(), "mine." + Id::FromBytes(request_.request_id())->ToHex());
  }
  EXPECT_NE(ids[0], ids[1]);
}

// The engine may still be working on an attempt that the caller no longer waits for.
TEST_F(RequestRunTest, AFurtherAttemptHasAnotherIdAtTheEngine) {
  UseEngines(2);
  request_.set_x_request_id("mine");
  const std::string first = "mine." + Id::FromBytes(request_.request_id())->ToHex();
  Script(R"("status":500)");
  Run();
  std::vector<std::string> ids;
  for (const auto* engine : {&first_, &second_}) {
    for (const auto& request : engine->requests()) ids.push_back(request.header("x-request-id"));
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<std::string>{first, first + "-2"}));
  UseEngines(1);
  request_.set_attempt(1);
  Run();
  EXPECT_EQ(first_.requests().back().header("x-request-id"), first + ".1");
}

TEST_F(RequestRunTest, ConnectionsAreReused) {
  Script(R"("tokens":3)");
  UseEngines(1);
  testing::RunOn(pool_.loop(0), [&](Loop& loop) -> Task<bool> {
    Worker worker(loop, SystemClock::Get(),
                  std::make_unique<ScriptedLedger>(loop, ledger_, 3000, Rates{1000, 2000}),
                  *journal_, *outbox_, *admissions_, table_, metrics_, options_);
    for (int i = 0; i < 5; ++i) {
      request_.set_request_id(Id::New().ToBytes());
      co_await worker.Serve(request_, std::make_shared<RecordingSink>(loop));
      for (int wait = 0; wait < 30'000 && worker.http().idle_connections() == 0; ++wait) {
        co_await loop.Sleep(1);
      }
    }
    EXPECT_EQ(worker.http().idle_connections(), 1u);
    EXPECT_EQ(first_.totals().connections, 1);
    EXPECT_EQ(first_.totals().finished, 5);
    co_return true;
  });
}

TEST_F(RequestRunTest, EndIsSentAfterTheSettlement) {
  Script(R"("tokens":3)");
  bool settled_before_end = false;
  Run([&](Loop&, RecordingSink& sink) {
    sink.on_event = [&](const inference::v1::Event& event) {
      if (event.has_end()) settled_before_end = ledger_.Settles().size() == 1;
    };
  });
  EXPECT_TRUE(settled_before_end);
}

TEST_F(RequestRunTest, AnUnreachableLedgerIsReplacedByTheOutbox) {
  Script(R"("tokens":5)");
  bool in_outbox = false;
  const Outcome outcome = Run([&](Loop& loop, RecordingSink& sink) {
    ledger_.unreachable = true;
    sink.on_event = [&](const inference::v1::Event& event) {
      if (!event.has_end()) return;
      in_outbox = outbox_->depth() == 1 && ledger_.ops.empty();
      ledger_.unreachable = false;
    };
  });
  EXPECT_TRUE(in_outbox);
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(OnlySettle(ledger_).usage().completion_tokens(), 5) << "delivered later";
  EXPECT_GT(outcome.end().charged_nano_usd(), 10) << "computed without the ledger";
}

TEST_F(RequestRunTest, ARefusedSettlementIsReportedAsNotCharged) {
  Script(R"("tokens":5)");
  ledger_.refuses_settles = true;
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_GT(outcome.end().usage().completion_tokens(), 0);
  EXPECT_EQ(outcome.end().charged_nano_usd(), 0);
  EXPECT_EQ(outbox_->depth(), 0);
}

TEST_F(RequestRunTest, EngineErrorsBeforeOutputCostNothing) {
  const std::pair<int, const char*> rows[] = {
      {400, "bad_request"},   {404, "upstream_unreachable"}, {429, "rate_limited"},
      {500, "server_error"},  {502, "upstream_error"},       {503, "service_unavailable"},
      {504, "upstream_error"}};
  for (const auto& [status, name] : rows) {
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    Script(R"("status":)" + std::to_string(status));
    const Outcome outcome = Run();
    ASSERT_EQ(outcome.events.size(), 1u) << status;
    EXPECT_EQ(outcome.end().error().error(), name) << status;
    EXPECT_EQ(outcome.end().charged_nano_usd(), 0);
    EXPECT_EQ(OnlySettle(ledger_).outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  }
}

TEST_F(RequestRunTest, AContextErrorIsRecognizedUnderAnyStatusAndInTheStream) {
  const std::string text =
      "This model's maximum context length is 4096 tokens. However, your request has 5000 input "
      "tokens.";
  for (const std::string& script :
       {R"("status":400,"error_body":{"error":{"message":")" + text + R"("}})",
        R"("status":500,"error_body":{"error":{"message":")" + text + R"("}})",
        R"("in_stream_error":")" + text + R"(","in_stream_error_after":0)"}) {
    ledger_.ops.clear();
    Script(script);
    const Outcome outcome = Run();
    ASSERT_EQ(outcome.events.size(), 1u) << script;
    EXPECT_EQ(outcome.end().error().error(), "context_length_exceeded") << script;
    EXPECT_NE(outcome.end().error().message().find("maximum context length is 4096 tokens"),
              std::string::npos);
    EXPECT_EQ(OnlySettle(ledger_).outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  }
}

TEST_F(RequestRunTest, ALowerBoundOfThePromptIsReplacedByTheTokenizersCount) {
  const auto overflow = [](int at_least) {
    return R"("status":400,"error_body":{"error":{"message":"This model's maximum context length )"
           R"(is 8 tokens. However, you requested 5 output tokens and your prompt contains at )"
           R"(least )" +
           std::to_string(at_least) + R"( input tokens."}})";
  };
  const auto error_of = [&](int at_least) {
    Script(overflow(at_least));
    return Run().end().error();
  };
  const common::v1::ErrorDetail counted = error_of(4);  // "hello there" has 9 tokens there
  EXPECT_EQ(counted.tokens().prompt(), 9);
  EXPECT_EQ(counted.tokens().output(), 5);
  EXPECT_FALSE(counted.tokens().prompt_is_lower_bound());
  EXPECT_NE(counted.message().find("you requested 14 tokens (9 in the prompt"), std::string::npos)
      << counted.message();
  // A tokenizer count below the engine's lower bound is ignored.
  EXPECT_EQ(error_of(4711).tokens().prompt(), 4711);
  EXPECT_TRUE(error_of(4711).tokens().prompt_is_lower_bound());
  first_.SetDefaultScript(R"({"tokenizer_status":500})");
  EXPECT_EQ(error_of(4).tokens().prompt(), 4);
  EXPECT_TRUE(error_of(4).tokens().prompt_is_lower_bound());
}

TEST_F(RequestRunTest, APromptWithMediaIsNotCounted) {
  Script(
      R"("status":400,"error_body":{"error":{"message":"This model's maximum context length is 8 )"
      R"(tokens. However, you requested 5 output tokens and your prompt contains at least 4 )"
      R"(input tokens."}})");
  request_.set_prompt_media_parts(1);
  EXPECT_TRUE(Run().end().error().tokens().prompt_is_lower_bound());
  EXPECT_EQ(first_.totals().tokenizer_requests, 0);
  // Names of media parts inside a text have no effect.
  request_.set_prompt_media_parts(0);
  request_.set_members_json(request_.members_json() + R"(,"stop":["\"image_url\"","image_url"])");
  const Outcome counted = Run();
  EXPECT_EQ(counted.end().error().error(), "context_length_exceeded");
  EXPECT_GT(counted.end().error().tokens().prompt(), 4);
  EXPECT_FALSE(counted.end().error().tokens().prompt_is_lower_bound());
  EXPECT_EQ(first_.totals().tokenizer_requests, 1);
}

TEST_F(RequestRunTest, AnUnreachableEngineIsReplacedByAnotherAndSettledOnce) {
  UseEngines(2);
  first_.SetListening(false);
  for (int i = 0; i < 4; ++i) {  // either engine may be selected first
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    Script(R"("tokens":4)");
    const Outcome outcome = Run();
    ASSERT_TRUE(outcome.ended());
    EXPECT_FALSE(outcome.end().has_error()) << outcome.end().error().internal();
    EXPECT_EQ(OnlySettle(ledger_).engine_id(), "second");
  }
}

TEST_F(RequestRunTest, AnEngineThatFailsBeforeItsFirstTokenIsReplaced) {
  UseEngines(2);
  for (const char* fault : {R"("cut_before_headers":true)", R"("status":503)", R"("status":500)",
                            R"("in_stream_error":"CUDA error","in_stream_error_after":0)"}) {
    first_.SetDefaultScript(std::string("{") + fault + "}");
    for (int i = 0; i < 2; ++i) {
      ledger_.ops.clear();
      request_.set_request_id(Id::New().ToBytes());
      Script(R"("tokens":4)");
      const Outcome outcome = Run();
      ASSERT_TRUE(outcome.ended());
      EXPECT_FALSE(outcome.end().has_error()) << fault << outcome.end().error().internal();
      EXPECT_EQ(OnlySettle(ledger_).engine_id(), "second");
    }
  }
}

TEST_F(RequestRunTest, ARefusedRequestIsNotRetried) {
  UseEngines(2);
  Script(R"("status":400)");
  Run();
  EXPECT_EQ(first_.totals().requests + second_.totals().requests, 1);
}

TEST_F(RequestRunTest, AllEnginesDown) {
  UseEngines(2);
  first_.SetListening(false);
  second_.SetListening(false);
  Script("");
  EXPECT_EQ(Run().end().error().error(), "upstream_unreachable");
  const Outcome again = Run();
  EXPECT_EQ(again.end().error().error(), "model_not_serving");
  EXPECT_EQ(again.end().error().reason(), "engines_down");
  EXPECT_GE(again.end().error().retry_after_ms(), 1000);
}

TEST_F(RequestRunTest, ASaturatedPoolIsRateLimited) {
  UseEngines(1, 1);
  ASSERT_TRUE(table_.Get()->engines()[0]->TryEnter());
  Script("");
  const Outcome refused = Run();
  EXPECT_EQ(refused.end().error().error(), "rate_limited");
  EXPECT_EQ(refused.end().error().reason(), "engine_full");
  table_.Get()->engines()[0]->Leave();
  EXPECT_FALSE(Run().end().has_error());
  EXPECT_EQ(table_.Get()->engines()[0]->running(), 0);
}

TEST_F(RequestRunTest, AnUnknownModelIsNotServing) {
  request_.set_model("ns/other");
  EXPECT_EQ(Run().end().error().error(), "model_not_serving");
  EXPECT_EQ(OnlySettle(ledger_).outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
}

TEST_F(RequestRunTest, ABrokenStreamIsChargedForWhatWasDelivered) {
  UseEngines(2);
  Script(R"("tokens":50,"cut_after_tokens":7)");
  const Outcome outcome = Run();
  EXPECT_TRUE(outcome.started());
  EXPECT_EQ(outcome.end().error().error(), "upstream_error");
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 7);
  EXPECT_EQ(OnlySettle(ledger_).outcome(), billing::v1::OUTCOME_FAILED_MID_STREAM);
  EXPECT_EQ(first_.totals().requests + second_.totals().requests, 1) << "no retry after output";
}

TEST_F(RequestRunTest, AnIdleEngineTimesOut) {
  options_.run.idle_timeout_ms = 1'500;
  Script(R"("tokens":50,"hang_after_tokens":3)");
  const Outcome outcome = Run();
  EXPECT_EQ(outcome.end().error().error(), "upstream_error");
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 3);
}

TEST_F(RequestRunTest, MissingImplausibleAndNegativeUsage) {
  Script(R"("tokens":12,"usage":"none")");
  Outcome outcome = Run();
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 12);
  EXPECT_TRUE(outcome.end().estimated());

  Script(R"("tokens":12,"usage":"absurd")");
  outcome = Run();
  EXPECT_LE(outcome.end().usage().prompt_tokens(), 1000);
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 12);
  EXPECT_TRUE(outcome.end().estimated());

  Script(R"("tokens":12,"usage":"negative")");
  outcome = Run();
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 12);
  EXPECT_TRUE(outcome.end().estimated());
}

TEST_F(RequestRunTest, TheEndMarkerIsOptional) {
  Script(R"("tokens":3,"no_done":true)");
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 3);
}

// A workspace must not see in cached_tokens what another one has sent.
TEST_F(RequestRunTest, EachWorkspaceHasItsOwnSaltUnlessTheEngineIsNotShared) {
  const auto sent = [&](const std::string& workspace, const std::string& own = "") {
    request_.set_request_id(Id::New().ToBytes());
    request_.set_workspace_id(workspace);
    request_.set_cache_salt(own);
    Script(R"("tokens":1)");
    Run();
    return test::Json::Parse(first_.requests().back().body).value()["cache_salt"].str();
  };
  const std::string of_a = sent("a");
  EXPECT_EQ(of_a.size(), 64u);
  EXPECT_EQ(sent("a"), of_a);
  EXPECT_NE(sent("b"), of_a);
  EXPECT_NE(sent("a", "mine"), of_a);
  EXPECT_NE(sent("b", of_a), of_a);
  options_.run.cache_salt_key = std::string(32, 'k');
  EXPECT_NE(sent("a"), of_a);
  for (const bool shared : {true, false}) {
    catalog::v1::Snapshot snapshot;
    auto& model = *snapshot.add_models();
    model.set_id("ns/m");
    model.set_pool("p");
    model.set_engine_model("sim/model");
    model.set_serving(true);
    auto& pool = *snapshot.add_pools();
    pool.set_name("p");
    auto& engine = *pool.add_engines();
    engine.set_id("first");
    engine.set_kind(catalog::v1::ENGINE_KIND_VLLM);
    engine.set_base_url(first_.base_url());
    engine.set_shared_cache(shared);
    // Built on the previous table, to check that a change of the setting takes effect.
    table_.Set(std::make_shared<const RoutingTable>(snapshot, table_.Get().get()));
    EXPECT_EQ(sent("a").empty(), shared);
  }
}

}  // namespace
}  // namespace tollgate::inference_router
