// Requests that are admitted from a lease on their workspace's credit (docs/adr/0042).
#include "services/inference_router/run/testing/request_run_fixture.h"

namespace tollgate::inference_router {
namespace {

class RequestRunLeaseTest : public RequestRunTest {
 protected:
  RequestRunLeaseTest() {
    auto& hold = *request_.mutable_hold();
    hold.set_authorized_nano_usd(0);
    hold.set_slice_nano_usd(0);
    auto& item = *request_.mutable_admission();
    item.set_request_id(request_.request_id());
    item.set_workspace_id("ws");
    item.set_key_id("key");
    item.set_model("ns/m");
    *item.mutable_price() = hold.price();
    item.set_prompt_tokens_bound(1000);
    item.set_output_tokens_bound(500);
    request_.set_max_tokens(500);
    Script(R"("tokens":20)");
  }
  // The first request finds no lease and makes the loop take one. The next request then runs.
  Outcome RunTwice(std::function<void(Worker&)> between = {}) {
    UseEngines(1);
    return testing::RunOn(pool_.loop(0), [&](Loop& loop) -> Task<Outcome> {
      Worker worker(loop, SystemClock::Get(),
                    std::make_unique<ScriptedLedger>(loop, ledger_, 0, Rates{1000, 2000}),
                    *journal_, *outbox_, *admissions_, table_, metrics_, options_);
      worker.Start();
      auto first = std::make_shared<RecordingSink>(loop);
      co_await worker.Serve(request_, first);
      EXPECT_EQ(first->events.size(), 1u);
      EXPECT_TRUE(first->events.at(0).end().no_lease());
      EXPECT_TRUE(first->events.at(0).end().not_run());
      while (ledger_.leases_asked.empty()) co_await loop.Sleep(1);
      co_await loop.Sleep(1);
      if (between) between(worker);
      auto sink = std::make_shared<RecordingSink>(loop);
      co_await worker.Serve(request_, sink);
      for (int i = 0; i < 4'000 && (admissions_->depth() > 0 || journal_->in_use() > 0); ++i) {
        co_await loop.Sleep(5);
      }
      if (give_back_) worker.GiveLeasesBack();
      while (give_back_ && ledger_.leases_asked.back().wanted_nano_usd() > 0)
        co_await loop.Sleep(1);
      co_return Outcome{sink->events};
    });
  }
  void ExpectGivenBack(const Outcome& outcome) {
    ASSERT_EQ(outcome.events.size(), 1u);
    EXPECT_TRUE(outcome.end().no_lease());
    EXPECT_TRUE(ledger_.ops.empty());
    ASSERT_GE(ledger_.leases_asked.size(), 2u);
    const billing::v1::TakeLeaseRequest& last = ledger_.leases_asked.back();
    EXPECT_EQ(last.wanted_nano_usd(), 0);
    EXPECT_EQ(last.lessee(), ledger_.leases_asked[0].lessee());
    EXPECT_EQ(last.month(), 202611);
  }
  bool give_back_ = false;                           // the lease, at the end
  static constexpr int64_t kPrompt = 1000;           // the bound costs 1 nano-USD per token
  static constexpr int64_t kWhole = kPrompt + 1000;  // 500 output tokens cost 2 each
};

TEST_F(RequestRunLeaseTest, TheLedgerLearnsOfItWithTheSettlement) {
  ledger_.lease_nano_usd = 10 * kWhole;
  const Outcome outcome = RunTwice();
  ASSERT_TRUE(outcome.ended());
  EXPECT_FALSE(outcome.end().has_error()) << outcome.end().error().DebugString();
  ASSERT_EQ(ledger_.leases_asked.size(), 1u);
  EXPECT_EQ(ledger_.leases_asked[0].workspace_id(), "ws");
  EXPECT_EQ(ledger_.leases_asked[0].wanted_nano_usd(), 8 * kWhole);
  ASSERT_EQ(ledger_.ops.size(), 1u);
  const billing::v1::MeterOp& op = ledger_.ops[0];
  ASSERT_TRUE(op.has_settle());
  EXPECT_EQ(op.admission().lessee(), ledger_.leases_asked[0].lessee());
  EXPECT_EQ(op.admission().month(), 202611);
  EXPECT_EQ(op.admission().item().request_id(), request_.request_id());
  const auto& usage = op.settle().usage();
  EXPECT_EQ(usage.completion_tokens(), 20);
  EXPECT_EQ(op.admission().authorized_nano_usd(),
            usage.prompt_tokens() + 2 * usage.completion_tokens())
      << "only what it needs is taken out of the lease";
  EXPECT_EQ(admissions_->depth(), 0) << "the ledger has it";
}

TEST_F(RequestRunLeaseTest, ARequestFromAnotherTimeIsLeftToTheLedger) {
  ledger_.lease_nano_usd = 10 * kWhole;
  for (const int64_t hours : {-13, 13}) {
    ledger_.leases_asked.clear();
    const Outcome outcome = RunTwice([&](Worker&) {
      const int64_t wall_ms = SystemClock::Get().WallUs() / 1000 + hours * 3'600'000;
      request_.set_request_id(Id::Make(wall_ms, 1, 2).ToBytes());
      request_.mutable_admission()->set_request_id(request_.request_id());
    });
    ASSERT_EQ(outcome.events.size(), 1u);
    EXPECT_TRUE(outcome.end().no_lease());
    request_.set_request_id(Id::New().ToBytes());
    request_.mutable_admission()->set_request_id(request_.request_id());
  }
  EXPECT_TRUE(ledger_.ops.empty());
}

TEST_F(RequestRunLeaseTest, ALeaseThatDoesNotCoverARequestDoesNotAdmitIt) {
  ledger_.lease_nano_usd = kWhole - 1;
  const Outcome outcome = RunTwice();
  ASSERT_EQ(outcome.events.size(), 1u);
  EXPECT_TRUE(outcome.end().no_lease());
  EXPECT_TRUE(ledger_.ops.empty());
  EXPECT_EQ(admissions_->depth(), 0);
}

TEST_F(RequestRunLeaseTest, ALeaseIsReturnedWithWhatWasSettled) {
  ledger_.lease_nano_usd = 10 * kWhole;
  give_back_ = true;
  ASSERT_TRUE(RunTwice().ended());
  ASSERT_EQ(ledger_.ops.size(), 1u);
  EXPECT_EQ(ledger_.leases_asked.back().settled_nano_usd(),
            ledger_.ops[0].admission().authorized_nano_usd());
  EXPECT_EQ(ledger_.leases_asked.back().used_nano_usd(),
            ledger_.leases_asked.back().settled_nano_usd());
}

// Another try has taken over: the ledger takes nothing out of the lease.
TEST_F(RequestRunLeaseTest, ARefusedSettlementCountsAsSettled) {
  ledger_.lease_nano_usd = 10 * kWhole;
  ledger_.refuses_settles = true;
  give_back_ = true;
  ASSERT_TRUE(RunTwice().ended());
  ASSERT_EQ(ledger_.ops.size(), 1u);
  EXPECT_GT(ledger_.leases_asked.back().settled_nano_usd(), 0);
  EXPECT_EQ(ledger_.leases_asked.back().used_nano_usd(),
            ledger_.leases_asked.back().settled_nano_usd());
}

// Billing pushes the workspaces whose leases must end: frozen ones, and those with a lowered cap.
TEST_F(RequestRunLeaseTest, APushedRecallEndsTheLeaseBeforeTheNextRequest) {
  ledger_.lease_nano_usd = 10 * kWhole;
  const std::vector<std::string> recalls = {"another", "ws"};
  ExpectGivenBack(RunTwice([&](Worker& worker) { worker.OnLeaseRecalls(recalls); }));
}

TEST_F(RequestRunLeaseTest, ARecallOfOtherWorkspacesChangesNothing) {
  ledger_.lease_nano_usd = 10 * kWhole;
  const std::vector<std::string> recalls = {"another"};
  const Outcome outcome = RunTwice([&](Worker& worker) { worker.OnLeaseRecalls(recalls); });
  ASSERT_TRUE(outcome.ended());
  EXPECT_FALSE(outcome.end().no_lease());
}

// A lease of this size is renewed after each request, so the refusal arrives with the second.
TEST_F(RequestRunLeaseTest, ARefusalThatRecallsEndsTheLease) {
  ledger_.lease_nano_usd = 2 * kWhole;
  UseEngines(1);
  testing::RunOn(pool_.loop(0), [&](Loop& loop) -> Task<int> {
    Worker worker(loop, SystemClock::Get(),
                  std::make_unique<ScriptedLedger>(loop, ledger_, 0, Rates{1000, 2000}), *journal_,
                  *outbox_, *admissions_, table_, metrics_, options_);
    worker.Start();
    const auto serve = [&]() -> Task<inference::v1::End> {
      auto sink = std::make_shared<RecordingSink>(loop);
      co_await worker.Serve(request_, sink);
      co_return sink->events.back().end();
    };
    EXPECT_TRUE((co_await serve()).no_lease());
    while (ledger_.leases_asked.empty()) co_await loop.Sleep(1);
    co_await loop.Sleep(1);
    ledger_.frozen = true;
    // Admits until the question that is refused; the last question gives the lease back.
    const auto given_back = [this] { return ledger_.leases_asked.back().wanted_nano_usd() == 0; };
    for (int i = 0; i < 1'000 && !given_back(); ++i) {
      (void)co_await serve();
      co_await loop.Sleep(10);
    }
    EXPECT_TRUE(given_back());
    EXPECT_TRUE((co_await serve()).no_lease());
    co_return 0;
  });
}

TEST_F(RequestRunLeaseTest, ItRunsWhileTheLedgerIsAway) {
  ledger_.lease_nano_usd = 10 * kWhole;
  const Outcome outcome = RunTwice([this](Worker&) { ledger_.unreachable = true; });
  ASSERT_TRUE(outcome.ended());
  EXPECT_FALSE(outcome.end().has_error());
  EXPECT_EQ(outbox_->depth(), 1) << "with its admission";
  EXPECT_EQ(admissions_->depth(), 0);
  // The next process sends it to the ledger.
  outbox_.reset();
  outbox_ = std::move(Outbox::Open(folder_ + "/outbox")).value();
  billing::v1::MeterOp op;
  ASSERT_EQ(outbox_->recovered().size(), 1u);
  ASSERT_TRUE(op.ParseFromString(outbox_->recovered().begin()->second));
  EXPECT_TRUE(op.has_settle());
  EXPECT_EQ(op.admission().item().workspace_id(), "ws");
}

TEST_F(RequestRunLeaseTest, AHeartbeatTellsTheLedgerOfWhatRunsLong) {
  ledger_.lease_nano_usd = 10 * kWhole;
  options_.heartbeat_ms = 10;
  Script(R"("tokens":20,"token_ms":100)");
  const Outcome outcome = RunTwice();
  ASSERT_TRUE(outcome.ended());
  ASSERT_GE(ledger_.ops.size(), 3u);
  EXPECT_TRUE(ledger_.ops[0].has_heartbeat());
  EXPECT_EQ(ledger_.ops[0].admission().authorized_nano_usd(), kWhole);
  const auto settles = ledger_.Settles();
  ASSERT_EQ(settles.size(), 1u);
  EXPECT_FALSE(settles[0].has_admission()) << "the ledger has opened the hold";
}

TEST_F(RequestRunLeaseTest, WhatFailsBeforeOutputTakesNothing) {
  ledger_.lease_nano_usd = 10 * kWhole;
  Script(R"("status":500)");
  const Outcome outcome = RunTwice();
  ASSERT_TRUE(outcome.ended());
  EXPECT_TRUE(outcome.end().has_error());
  ASSERT_EQ(ledger_.ops.size(), 1u);
  EXPECT_EQ(ledger_.ops[0].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
  EXPECT_EQ(ledger_.ops[0].admission().authorized_nano_usd(), 0);
}

}  // namespace
}  // namespace tollgate::inference_router
