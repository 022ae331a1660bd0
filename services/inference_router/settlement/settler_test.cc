#include "services/inference_router/settlement/settler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <fstream>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/observability/metrics.h"
#include "common/runtime/testing/run_coro.h"

namespace tollgate::inference_router {
namespace {

// A scripted ledger that answers, is unreachable, or answers late.
class FakeLedger : public MeteringClient {
 public:
  explicit FakeLedger(Loop& loop) : loop_(loop) {}
  Task<Result<billing::v1::MeterResult>> Meter(billing::v1::MeterOp op,
                                               int64_t timeout_ms) override {
    ++calls;
    ops.push_back(op);
    const int64_t delay = delays_ms.empty() ? 0 : delays_ms.front();
    if (!delays_ms.empty()) delays_ms.pop_front();
    if (delay < 0 || answers_only.value_or(op.attempt()) != op.attempt()) {
      co_return Unavailable("ledger unreachable");
    }
    if (delay > 0) co_await loop_.Sleep(delay);
    billing::v1::MeterResult result;
    result.set_ok(ok);
    result.set_charged_nano_usd(ok ? 77 : 0);
    if (!ok) result.set_denied_by(billing::v1::DENY_REASON_INVALID);
    ++answers;
    co_return result;
  }
  Task<Result<billing::v1::TakeLeaseResponse>> TakeLease(billing::v1::TakeLeaseRequest,
                                                         int64_t) override {
    co_return Unavailable("no leases here");
  }

  std::deque<int64_t> delays_ms;  // per call; negative: unreachable
  bool ok = true;
  std::optional<int32_t> answers_only;  // answers only this attempt; unreachable for others
  int calls = 0, answers = 0;
  std::vector<billing::v1::MeterOp> ops;

 private:
  Loop& loop_;
};

class SettlerTest : public ::testing::Test {
 protected:
  SettlerTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "settlerXXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    Reopen();
    options_.patience_ms = 30;
    options_.first_pause_ms = 10;
    options_.longest_pause_ms = 20;
  }
  ~SettlerTest() override {
    outbox_.reset();
    journal_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Reopen() {
    outbox_.reset();
    journal_.reset();
    journal_ = std::move(Journal::Open(folder_ + "/journal")).value();
    outbox_ = std::move(Outbox::Open(folder_ + "/outbox")).value();
  }
  JournalSlot* Slot(const std::string& id, bool streamed = true) {
    return journal_->Acquire({id, "ws", "key", "m", streamed, 1});
  }
  static billing::v1::MeterOp Op(const std::string& id) {
    billing::v1::MeterOp op;
    op.set_request_id(id);
    op.set_workspace_id("ws");
    op.mutable_settle()->set_outcome(billing::v1::OUTCOME_COMPLETED);
    return op;
  }
  std::string Quarantine() const {
    std::ifstream file(folder_ + "/outbox.quarantine", std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }
  static Task<bool> Until(Loop& loop, std::function<bool()> condition) {
    for (int i = 0; i < 6'000 && !condition(); ++i) co_await loop.Sleep(5);
    co_return condition();
  }

  std::string folder_;
  const std::string id_ = Id::New().ToBytes();
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Outbox> outbox_;
  SettlerOptions options_;
};

TEST_F(SettlerTest, AFastLedgerNeedsNoOutbox) {
  const Settled settled = testing::RunTask([&](Loop& loop) -> Task<Settled> {
    FakeLedger ledger(loop);
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    co_return co_await settler.Settle(Op(id_), Slot(id_));
  });
  EXPECT_EQ(settled.durability, Durability::kLedger);
  EXPECT_EQ(settled.charged_nano_usd, 77);
  EXPECT_EQ(journal_->in_use(), 0);
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/outbox"), FileHeader::kBytes);
}

TEST_F(SettlerTest, ASlowLedgerIsReplacedByTheOutboxAndAcknowledgesItLater) {
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    ledger.delays_ms = {1'500};
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    const Settled settled = co_await settler.Settle(Op(id_), Slot(id_));
    EXPECT_EQ(settled.durability, Durability::kOutbox);
    EXPECT_FALSE(settled.charged_nano_usd);
    EXPECT_EQ(journal_->in_use(), 0) << "the outbox has it";
    EXPECT_EQ(outbox_->depth(), 1);
    EXPECT_TRUE(co_await Until(loop, [&] { return outbox_->depth() == 0; }));
    EXPECT_EQ(ledger.calls, 1) << "the late answer counts; no retry";
    co_return true;
  });
}

// The gateway moved the request to another router and back, or it was tried again after a fence.
TEST_F(SettlerTest, TwoTriesOfARequestHaveASettlementEach) {
  billing::v1::MeterOp first = Op(id_), second = Op(id_);
  second.set_attempt(2);
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    ledger.answers_only = -1;  // answers none
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    EXPECT_EQ((co_await settler.Settle(first, Slot(id_))).durability, Durability::kOutbox);
    EXPECT_EQ((co_await settler.Settle(second, Slot(id_))).durability, Durability::kOutbox);
    ledger.answers_only = first.attempt();
    EXPECT_TRUE(co_await Until(loop, [&] { return ledger.answers == 1; }));
    co_return true;
  });
  Reopen();
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    settler.Recover();
    EXPECT_TRUE(co_await Until(loop, [&] { return settler.recovered(); }));
    EXPECT_EQ(ledger.ops.size(), 1u) << "the answer to the first try acknowledged the second one";
    if (!ledger.ops.empty()) EXPECT_EQ(ledger.ops[0].attempt(), 2);
    EXPECT_TRUE(co_await Until(loop, [&] { return outbox_->depth() == 0; }));
    co_return true;
  });
}

TEST_F(SettlerTest, ARecordOfAnEarlierVersionIsSettledAndAcknowledged) {
  billing::v1::MeterOp op = Op(id_);
  op.set_attempt(1);
  outbox_->Append(id_, op.SerializeAsString(), nullptr);
  Slot(id_);  // for the same attempt
  Reopen();
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    settler.Recover();
    EXPECT_TRUE(co_await Until(loop, [&] { return outbox_->depth() == 0; }));
    EXPECT_EQ(ledger.calls, 1) << "the outbox has the settlement of the slot";
    EXPECT_EQ(journal_->in_use(), 0);
    co_return true;
  });
}

TEST_F(SettlerTest, RetriesWhileTheLedgerIsUnreachable) {
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    ledger.delays_ms = {-1, -1, -1, -1, -1, -1};
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    const Settled settled = co_await settler.Settle(Op(id_), Slot(id_));
    EXPECT_EQ(settled.durability, Durability::kOutbox);
    EXPECT_TRUE(co_await Until(loop, [&] { return outbox_->depth() == 0; }));
    EXPECT_EQ(ledger.calls, 7);
    for (const auto& op : ledger.ops) {
      EXPECT_EQ(op.SerializeAsString(), Op(id_).SerializeAsString()) << "the identical operation";
    }
    co_return true;
  });
}

double Count(const char* name, const metrics::Labels& labels) {
  return metrics::Counter(name, "", labels).Value();
}

TEST_F(SettlerTest, ARefusalIsFinalCountedAndNotTakenForACharge) {
  const metrics::Labels labels = {{"reason", "invalid"}, {"source", "live"}};
  const double before = Count("tollgate_router_settlements_refused_total", labels);
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    ledger.ok = false;
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    const Settled settled = co_await settler.Settle(Op(id_), Slot(id_));
    EXPECT_EQ(settled.durability, Durability::kRefused);
    EXPECT_EQ(settled.charged_nano_usd, 0);
    EXPECT_EQ(ledger.calls, 1);
    co_return true;
  });
  EXPECT_EQ(Count("tollgate_router_settlements_refused_total", labels), before + 1);
}

TEST_F(SettlerTest, ASettlementWithoutAnAnswerEndsInTheQuarantine) {
  options_.give_up_ms = 2'000;  // the record must reach the disk before
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    ledger.delays_ms.assign(1000, -1);
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    const Settled settled = co_await settler.Settle(Op(id_), Slot(id_));
    EXPECT_EQ(settled.durability, Durability::kOutbox);
    EXPECT_TRUE(co_await Until(loop, [&] { return outbox_->depth() == 0; }));
    co_return true;
  });
  const std::string line = Quarantine();
  EXPECT_NE(line.find("\"reason\":\"gave_up\""), std::string::npos);
  EXPECT_NE(line.find(HexEncode(Op(id_).SerializeAsString())), std::string::npos);
}

TEST_F(SettlerTest, ARecordThatIsNoSettlementIsNeverAcknowledgedSilently) {
  const std::string garbage = Id::New().ToBytes(), empty = Id::New().ToBytes(),
                    heartbeat = Id::New().ToBytes(), other = Id::New().ToBytes();
  billing::v1::MeterOp no_settle = Op(heartbeat);
  no_settle.mutable_heartbeat();
  outbox_->Append(garbage, "\xff\xff\xff", nullptr);
  outbox_->Append(empty, "", nullptr);
  outbox_->Append(heartbeat, no_settle.SerializeAsString(), nullptr);
  outbox_->Append(other, Op(id_).SerializeAsString(), nullptr);
  outbox_->Append(id_, Op(id_).SerializeAsString(), nullptr);
  Reopen();
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    settler.Recover();
    EXPECT_TRUE(co_await Until(loop, [&] { return outbox_->depth() == 0; }));
    EXPECT_EQ(ledger.calls, 1) << "the settlement among them";
    co_return true;
  });
  const std::string lines = Quarantine();
  for (const std::string& id : {garbage, empty, heartbeat, other}) {
    EXPECT_NE(
        lines.find("\"reason\":\"unparsable\",\"offset\":-1,\"request_id\":\"" + HexEncode(id)),
        std::string::npos);
  }
}

TEST_F(SettlerTest, ReleaseReturnsEarlyAndKeepsTheSlotUntilTheAnswer) {
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    ledger.delays_ms = {-1, -1, -1, -1, -1, -1, -1, -1};
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    co_await settler.Release(Op(id_), Slot(id_));
    EXPECT_EQ(journal_->in_use(), 1);
    EXPECT_EQ(outbox_->depth(), 0) << "a release is not written to disk";
    EXPECT_TRUE(co_await Until(loop, [&] { return journal_->in_use() == 0; }));
    co_return true;
  });
}

TEST_F(SettlerTest, AfterACrashTheOutboxAndTheJournalAreSettledOnce) {
  const std::string ended = Id::New().ToBytes(), running = Id::New().ToBytes(),
                    waiting = Id::New().ToBytes(), prompt = Id::New().ToBytes(),
                    whole = Id::New().ToBytes();
  // A process crashed. One request had ended (its slot was not released yet), one was streaming,
  // one had no engine yet, one had an engine and no output, and one was not streamed.
  billing::v1::MeterOp settled = Op(ended);
  settled.set_attempt(1);
  outbox_->Append(OutboxKey(ended, 1), settled.SerializeAsString(), nullptr);
  Slot(ended);
  JournalSlot* slot = Slot(running);
  slot->SetEngine("e1");
  slot->SetAccepted();
  slot->SetUsage(12, 34);
  slot->NextSequence();
  Slot(waiting);
  slot = Slot(prompt);
  slot->SetAccepted();
  slot->SetUsage(12, 0);
  slot = Slot(whole, false);
  slot->SetAccepted();
  slot->SetUsage(12, 34);
  Reopen();

  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    ledger.delays_ms = {-1};
    Settler settler(loop, ledger, *journal_, *outbox_, options_);
    EXPECT_TRUE(settler.recovered());
    settler.Recover();
    EXPECT_FALSE(settler.recovered());
    EXPECT_TRUE(co_await Until(loop, [&] { return settler.recovered(); }));
    EXPECT_TRUE(co_await Until(loop, [&] { return outbox_->depth() == 0; }));
    EXPECT_EQ(journal_->in_use(), 0);
    EXPECT_EQ(ledger.calls, 6) << "five operations, one of them twice";
    std::map<std::string, billing::v1::MeterOp> by_id;
    for (const auto& op : ledger.ops) by_id[op.request_id()] = op;
    EXPECT_EQ(by_id.size(), 5u);
    for (const std::string& free : {waiting, prompt, whole}) {  // decision 52
      EXPECT_EQ(by_id[free].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
      EXPECT_EQ(by_id[free].attempt(), 1);
    }
    EXPECT_EQ(by_id[ended].settle().outcome(), billing::v1::OUTCOME_COMPLETED);
    EXPECT_EQ(by_id[running].settle().outcome(), billing::v1::OUTCOME_RECOVERED);
    EXPECT_EQ(by_id[running].settle().usage().prompt_tokens(), 12);
    EXPECT_EQ(by_id[running].settle().usage().completion_tokens(), 34);
    EXPECT_EQ(by_id[running].settle().engine_id(), "e1");
    EXPECT_GT(by_id[running].sequence(), 1);
    EXPECT_EQ(by_id[waiting].settle().outcome(), billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
    co_return true;
  });
}

// docs/adr/0042: a request that the ledger does not know is settled together with its admission.
TEST_F(SettlerTest, AfterACrashWhatWasAdmittedFromALeaseIsSettledWithItsAdmission) {
  const std::string running = Id::New().ToBytes(), lost = Id::New().ToBytes();
  const std::string file = folder_ + "/admissions";
  auto admissions = std::move(Outbox::Open(file)).value();
  for (const std::string& id : {running, lost}) {
    billing::v1::Admission admission;
    admission.mutable_item()->set_request_id(id);
    admission.set_lessee("loop-1");
    admission.set_authorized_nano_usd(70);
    admissions->Append(OutboxKey(id, 1), admission.SerializeAsString(), nullptr);
  }
  JournalSlot* slot = Slot(running);
  slot->SetAccepted();
  slot->SetUsage(12, 34);
  admissions.reset();
  Reopen();
  admissions = std::move(Outbox::Open(file)).value();
  const double before = Count("tollgate_router_admissions_lost_total", {});
  testing::RunTask([&](Loop& loop) -> Task<bool> {
    FakeLedger ledger(loop);
    Settler settler(loop, ledger, *journal_, *outbox_, options_, admissions.get());
    settler.Recover();
    EXPECT_TRUE(co_await Until(loop, [&] { return settler.recovered(); }));
    EXPECT_EQ(ledger.ops.size(), 1u);
    for (const auto& op : ledger.ops) {
      EXPECT_EQ(op.request_id(), running);
      EXPECT_EQ(op.settle().outcome(), billing::v1::OUTCOME_RECOVERED);
      EXPECT_EQ(op.admission().lessee(), "loop-1");
      EXPECT_EQ(op.admission().authorized_nano_usd(), 70);
    }
    EXPECT_TRUE(co_await Until(loop, [&] { return admissions->depth() == 0; }));
    co_return true;
  });
  EXPECT_EQ(Count("tollgate_router_admissions_lost_total", {}), before + 1)
      << "the journal lacks one";
}

}  // namespace
}  // namespace tollgate::inference_router
