// Requests and the ledger: extensions, cuts, heartbeats, and what a client that disconnects pays.
#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

using billing::v1::MeterOp;

TEST_F(RequestRunTest, AnAnswerCutByCreditEndsWithLength) {
  ledger_.limit_nano_usd = 3000;  // so that no extension is granted
  Script(R"("tokens":60000)");
  const Outcome outcome = Run();
  ASSERT_TRUE(outcome.ended());
  EXPECT_FALSE(outcome.end().has_error()) << "decision 4: not an error";
  EXPECT_TRUE(outcome.end().cut_by_credit());
  EXPECT_EQ(outcome.finish(), inference::v1::FINISH_REASON_LENGTH);
  const auto settles = ledger_.Settles();
  ASSERT_EQ(settles.size(), 1u);
  EXPECT_TRUE(settles[0].settle().cut_by_credit());
  EXPECT_EQ(settles[0].settle().outcome(), billing::v1::OUTCOME_COMPLETED);
  const auto& usage = outcome.end().usage();
  EXPECT_LE(usage.prompt_tokens() + 2 * usage.completion_tokens(), 3000) << "never above the hold";
  EXPECT_GE(usage.prompt_tokens() + 2 * usage.completion_tokens(), 2990)
      << "but the hold is used up";
  EXPECT_LE(outcome.deltas(), usage.completion_tokens() + 1);
  EXPECT_TRUE(first_.WaitFor([](const test::EngineSim& sim) { return sim.running() == 0; }));
  EXPECT_EQ(first_.requests()[0].finished, false) << "the engine was aborted";
}

TEST_F(RequestRunTest, EveryChoiceIsClosedOnACutByCredit) {
  ledger_.limit_nano_usd = 3000;
  request_.set_choices(3);
  Script(R"("tokens":5000)");
  request_.set_members_json(request_.members_json() + R"(,"n":3)");
  const Outcome outcome = Run();
  for (int choice = 0; choice < 3; ++choice) {
    EXPECT_EQ(outcome.finish(choice), inference::v1::FINISH_REASON_LENGTH) << choice;
  }
}

TEST_F(RequestRunTest, TheHoldIsExtendedAhead) {
  Script(R"("tokens":6000)");
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.end().cut_by_credit());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 6000);
  // The slice follows the rate of the stream, which depends on the machine's load.
  EXPECT_GE(ledger_.Count(MeterOp::kExtend), 1);
  EXPECT_LE(ledger_.Count(MeterOp::kExtend), 10);
  int64_t sequence = 0;
  for (const auto& op : ledger_.ops) {
    EXPECT_EQ(op.sequence(), sequence + 1) << "sequence numbers are consecutive";
    sequence = op.sequence();
  }
}

TEST_F(RequestRunTest, ASlowLedgerDoesNotCutTheStream) {
  ledger_.answer_ms = 30;
  options_.settler.patience_ms = 500;
  Script(R"("tokens":2500)");
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.end().cut_by_credit());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 2500);
}

TEST_F(RequestRunTest, TheHoldIsNotExtendedBeyondMaxTokens) {
  request_.set_max_tokens(1000);
  Script(R"("tokens":1000)");
  const Outcome outcome = Run();
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 1000);
  EXPECT_EQ(ledger_.Count(MeterOp::kExtend), 0) << "the first slice pays for max_tokens";
}

// Decision 41: a missing answer of the ledger is not a lack of credit.
TEST_F(RequestRunTest, AnOutageOfTheLedgerSuspendsTheStreamUntilItAnswers) {
  Script(R"("tokens":5000)");
  const Outcome outcome = Run([&](Loop& loop, RecordingSink& sink) {
    sink.on_event = [&](const inference::v1::Event& event) {
      if (!event.has_started()) return;
      ledger_.unreachable = true;
      loop.RunAfter(500, [&] { ledger_.unreachable = false; });
    };
  });
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_FALSE(outcome.end().cut_by_credit());
  EXPECT_EQ(outcome.finish(), inference::v1::FINISH_REASON_STOP);
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 5000);
}

TEST_F(RequestRunTest, ALedgerThatStaysSilentEndsTheStreamWhenItsHoldIsUsedUp) {
  options_.run.patience.no_answer_ms = 300;
  Script(R"("tokens":5000)");
  const int64_t before_us = SystemClock::Get().MonotonicUs();
  const Outcome outcome = Run([&](Loop&, RecordingSink& sink) {
    sink.on_event = [&](const inference::v1::Event& event) {
      ledger_.unreachable = !event.has_end();
    };
  });
  EXPECT_GE(SystemClock::Get().MonotonicUs() - before_us, 300'000);
  EXPECT_FALSE(outcome.end().has_error()) << "a legal end";
  EXPECT_EQ(outcome.finish(), inference::v1::FINISH_REASON_LENGTH);
  EXPECT_FALSE(outcome.end().cut_by_credit()) << "the ledger did not report a lack of credit";
  ASSERT_EQ(ledger_.Settles().size(), 1u);
  EXPECT_FALSE(ledger_.Settles()[0].settle().cut_by_credit());
  const auto& usage = outcome.end().usage();
  EXPECT_LE(usage.prompt_tokens() + 2 * usage.completion_tokens(), 3000);
  EXPECT_GE(usage.prompt_tokens() + 2 * usage.completion_tokens(), 2990)
      << "the authorized amount is used up";
}

TEST_F(RequestRunTest, HeldCreditSuspendsTheStreamUntilItIsFree) {
  ledger_.limit_nano_usd = 3000;
  ledger_.limited_by = billing::v1::DENY_REASON_HELD;
  Script(R"("tokens":3000)");
  const Outcome outcome = Run([&](Loop& loop, RecordingSink&) {
    loop.RunAfter(400, [&] { ledger_.limit_nano_usd = INT64_MAX; });
  });
  EXPECT_FALSE(outcome.end().cut_by_credit());
  EXPECT_EQ(outcome.end().usage().completion_tokens(), 3000);
  EXPECT_LE(ledger_.Count(MeterOp::kExtend), 20) << "asked for again with pauses";
}

TEST_F(RequestRunTest, CreditThatStaysHeldEndsTheStreamWithLengthAndNoMark) {
  options_.run.patience.held_ms = 200;
  ledger_.limit_nano_usd = 3000;
  ledger_.limited_by = billing::v1::DENY_REASON_HELD;
  Script(R"("tokens":3000)");
  const Outcome outcome = Run();
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outcome.finish(), inference::v1::FINISH_REASON_LENGTH);
  EXPECT_FALSE(outcome.end().cut_by_credit());
  EXPECT_FALSE(ledger_.Settles()[0].settle().cut_by_credit());
}

TEST_F(RequestRunTest, ACallerWhoLeavesASuspendedStreamEndsItAtOnce) {
  ledger_.limit_nano_usd = 3000;
  ledger_.limited_by = billing::v1::DENY_REASON_HELD;
  Script(R"("tokens":3000)");
  options_.run.patience.held_ms = 600'000;
  const int64_t before_us = SystemClock::Get().MonotonicUs();
  Run([this](Loop& loop, RecordingSink& sink) {
    loop.Spawn([](Loop& loop, const LedgerScript& ledger, RecordingSink& sink) -> Task<void> {
      // Credit was asked for again.
      while (ledger.Count(MeterOp::kExtend) < 2) co_await loop.Sleep(5);
      sink.Cancel();
    }(loop, ledger_, sink));
  });
  EXPECT_LT(SystemClock::Get().MonotonicUs() - before_us, 60'000'000);
  ASSERT_EQ(ledger_.Settles().size(), 1u);
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_CLIENT_GONE);
}

// The credit is free for other requests, so nothing more may be delivered on it.
TEST_F(RequestRunTest, AHoldThatTheLedgerHasClosedEndsTheRequestWithAnError) {
  options_.heartbeat_ms = 20;
  Script(R"("tokens":100000,"token_ms":2)");
  const double lost = metrics_.holds_lost.Value();
  const Outcome outcome = Run([&](Loop&, RecordingSink& sink) {
    sink.on_event = [&, seen = 0](const inference::v1::Event& event) mutable {
      if (event.has_delta() && ++seen == 10) ledger_.closed = true;
    };
  });
  ASSERT_TRUE(outcome.ended());
  EXPECT_EQ(outcome.end().error().error(), "service_unavailable");
  EXPECT_FALSE(outcome.end().cut_by_credit());
  EXPECT_EQ(metrics_.holds_lost.Value(), lost + 1);
  EXPECT_TRUE(first_.WaitFor([](const test::EngineSim& sim) { return sim.running() == 0; }))
      << "the engine was aborted";
  ASSERT_EQ(ledger_.Settles().size(), 1u);
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_MID_STREAM);
}

// Decision 52: nothing of an answer that is not streamed is delivered before its end.
TEST_F(RequestRunTest, AnEngineThatBreaksChargesOnlyWhatWasDelivered) {
  for (const bool streamed : {true, false}) {
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    request_.set_streamed(streamed);
    Script(R"("tokens":50,"cut_after_tokens":20)");
    const Outcome outcome = Run();
    EXPECT_TRUE(outcome.end().has_error());
    ASSERT_EQ(ledger_.Settles().size(), 1u);
    EXPECT_EQ(ledger_.Settles()[0].settle().outcome(),
              streamed ? billing::v1::OUTCOME_FAILED_MID_STREAM
                       : billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
    EXPECT_EQ(outcome.end().has_usage(), streamed) << "the gateway sees that nothing is charged";
  }
}

// Decision 41: a hold is kept alive from admission on.
TEST_F(RequestRunTest, HeartbeatsBeginBeforeTheEngineAnswers) {
  options_.heartbeat_ms = 20;
  Script(R"("tokens":1,"delay_ms":2000,"late_headers":true)");
  Run();
  EXPECT_GE(ledger_.Count(MeterOp::kHeartbeat), 5);
}

TEST_F(RequestRunTest, HeartbeatsReportProgress) {
  options_.heartbeat_ms = 20;
  Script(R"("tokens":30,"token_ms":50)");
  const Outcome outcome = Run();
  EXPECT_GE(ledger_.Count(MeterOp::kHeartbeat), 3);
  int64_t last = 0;
  for (const auto& op : ledger_.ops) {
    if (!op.has_heartbeat()) continue;
    EXPECT_GE(op.heartbeat().usage().completion_tokens(), last) << "cumulative";
    if (op.heartbeat().usage().completion_tokens() > 0) {
      EXPECT_GT(op.heartbeat().usage().prompt_tokens(), 0);
    }
    last = op.heartbeat().usage().completion_tokens();
  }
  EXPECT_TRUE(ledger_.ops.back().has_settle()) << "no operation after the settlement";
}

TEST_F(RequestRunTest, ADisconnectAbortsTheEngineAndChargesWhatWasProduced) {
  Script(R"("tokens":100000,"token_ms":2)");
  const Outcome outcome = Run([&](Loop& loop, RecordingSink& sink) {
    sink.on_event = [&loop, &sink, seen = 0](const inference::v1::Event&) mutable {
      if (++seen == 10) loop.Post([&sink] { sink.Cancel(); });
    };
  });
  EXPECT_FALSE(outcome.ended()) << "no client to send it to";
  EXPECT_TRUE(first_.WaitFor([](const test::EngineSim& sim) { return sim.totals().aborted == 1; }));
  const auto settles = ledger_.Settles();
  ASSERT_EQ(settles.size(), 1u);
  EXPECT_EQ(settles[0].settle().outcome(), billing::v1::OUTCOME_CLIENT_GONE);
  EXPECT_GE(settles[0].settle().usage().completion_tokens(), 9);
  EXPECT_LE(settles[0].settle().usage().completion_tokens(), first_.requests()[0].tokens_generated);
  EXPECT_GT(settles[0].settle().usage().prompt_tokens(), 0);
}

TEST_F(RequestRunTest, ADisconnectBeforeTheFirstTokenChargesThePromptOnlyIfItWasAccepted) {
  // after_ms: time after the engine got the request.
  const auto leave = [this](int64_t after_ms) {
    Run([this, after_ms](Loop& loop, RecordingSink& sink) {
      loop.Spawn([](Loop& loop, const test::EngineSim& engine, RecordingSink& sink,
                    int64_t after_ms) -> Task<void> {
        while (engine.running() == 0) co_await loop.Sleep(1);
        co_await loop.Sleep(after_ms);
        sink.Cancel();
      }(loop, first_, sink, after_ms));
    });
  };
  // The response head is sent with the first token, so the engine has not accepted the request yet.
  Script(R"("tokens":5,"delay_ms":60000,"late_headers":true)");
  leave(1);
  ASSERT_EQ(ledger_.Settles().size(), 1u);
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  EXPECT_TRUE(first_.WaitFor([](const test::EngineSim& sim) { return sim.totals().aborted == 1; }));

  ledger_.ops.clear();
  request_.set_request_id(Id::New().ToBytes());
  Script(R"("tokens":5,"delay_ms":60000)");
  leave(1'000);  // the response head has arrived
  ASSERT_EQ(ledger_.Settles().size(), 1u);
  const billing::v1::SettleOp settle = ledger_.Settles()[0].settle();
  EXPECT_EQ(settle.outcome(), billing::v1::OUTCOME_CLIENT_GONE);
  EXPECT_GT(settle.usage().prompt_tokens(), 0);
  EXPECT_EQ(settle.usage().completion_tokens(), 0);
}

// The connection to the gateway broke, so nobody got anything that was not delivered before
// (decision 52).
TEST_F(RequestRunTest, AGatewayThatIsLostChargesOnlyWhatWasDelivered) {
  const auto run = [&](bool streamed, int deltas) {
    ledger_.ops.clear();
    request_.set_request_id(Id::New().ToBytes());
    request_.set_streamed(streamed);
    Run([deltas](Loop& loop, RecordingSink& sink) {
      sink.lost = true;
      if (deltas == 0) loop.RunAfter(50, [&sink] { sink.Cancel(); });
      sink.on_event = [&loop, &sink, seen = 0, deltas](const inference::v1::Event& event) mutable {
        if (event.has_delta() && ++seen == deltas) loop.Post([&sink] { sink.Cancel(); });
      };
    });
    EXPECT_EQ(ledger_.Settles().size(), 1u);
    return ledger_.Settles().back().settle();
  };
  Script(R"("tokens":5,"delay_ms":3000)");
  EXPECT_EQ(run(true, 0).outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  EXPECT_EQ(run(false, 0).outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  Script(R"("tokens":100000,"token_ms":2)");
  EXPECT_EQ(run(false, 10).outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT)
      << "the gateway sends nothing of it before its end";
  const billing::v1::SettleOp delivered = run(true, 10);
  EXPECT_EQ(delivered.outcome(), billing::v1::OUTCOME_CLIENT_GONE);
  EXPECT_GE(delivered.usage().completion_tokens(), 10);
}

// Decision 7: whenever a router crashes, its journal knows of everything that the caller has.
TEST_F(RequestRunTest, TheJournalKnowsOfOutputBeforeItReachesTheCaller) {
  Script(R"("tokens":40)");
  int64_t sent = 0;
  Run([&](Loop&, RecordingSink& sink) {
    sink.on_event = [&](const inference::v1::Event& event) {
      if (!event.has_delta()) return;
      sent += event.delta().content_json().empty() ? 0 : 1;
      // A copy of the files that a router starting now would find.
      const std::string copy = folder_ + "/copy";
      std::filesystem::copy_file(folder_ + "/journal", copy,
                                 std::filesystem::copy_options::overwrite_existing);
      const auto found = std::move(Journal::Open(copy)).value();
      ASSERT_EQ(found->recovered().size(), 1u);
      const common::v1::Usage usage = found->recovered()[0].usage;
      EXPECT_GT(usage.prompt_tokens(), 0);
      EXPECT_GE(usage.completion_tokens(), sent);
      EXPECT_LE(usage.completion_tokens(), sent + 1) << "at most one event that was not sent";
    };
  });
  EXPECT_EQ(sent, 40);
}

TEST_F(RequestRunTest, ADisconnectBeforeAnyEngineIsNotCharged) {
  Script("");
  Run([](Loop&, RecordingSink& sink) { sink.Cancel(); });
  ASSERT_EQ(ledger_.Settles().size(), 1u);
  EXPECT_EQ(ledger_.Settles()[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  EXPECT_EQ(first_.totals().requests, 0);
}

TEST_F(RequestRunTest, ASlowClientSlowsTheEngineDown) {
  Script(R"("tokens":200000)");
  ledger_.limit_nano_usd = INT64_MAX;
  request_.mutable_hold()->set_authorized_nano_usd(1'000'000'000);
  int64_t while_blocked = 0;
  Run([&](Loop& loop, RecordingSink& sink) {
    sink.on_event = [&, seen = 0](const inference::v1::Event&) mutable {
      if (++seen != 10) return;
      sink.blocked = true;
      loop.RunAfter(300, [&] {
        while_blocked = first_.requests()[0].tokens_generated;
        sink.Cancel();
      });
    };
  });
  EXPECT_GT(while_blocked, 0);
  EXPECT_LT(while_blocked, 150'000) << "back-pressure must reach the engine";
}

}  // namespace
}  // namespace tollgate::inference_router
