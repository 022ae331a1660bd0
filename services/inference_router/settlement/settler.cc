#include "services/inference_router/settlement/settler.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <random>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/observability/log.h"
#include "common/runtime/notify.h"
#include "services/inference_router/settlement/settlement_metrics.h"

namespace tollgate::inference_router {
namespace {

// End is delayed for this long when neither ledger nor disk is available.
constexpr int64_t kWithoutDiskMs = 10'000;
// Gap above the journal's sequence, which may be one update old.
constexpr int64_t kRecoveredSequenceGap = 1 << 20;

int64_t Jittered(int64_t pause_ms) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return std::uniform_int_distribution<int64_t>(pause_ms / 2, pause_ms)(random);
}

// One operation being delivered. Lives until the ledger has answered.
struct Job {
  Job(Loop& loop, billing::v1::MeterOp operation, JournalSlot* slot)
      : op(std::move(operation)),
        slot(slot),
        outbox_key(OutboxKey(op.request_id(), op.attempt())),
        changed(loop) {}
  billing::v1::MeterOp op;
  JournalSlot* slot;
  std::string outbox_key;
  std::optional<billing::v1::MeterResult> answer;
  bool in_outbox = false;
  std::optional<bool> written;
  // Set when the ledger or the outbox has answered.
  Event changed;
  bool recovered = false;           // from a previous process
  std::function<void()> on_answer;  // of the ledger
};
using JobPointer = std::shared_ptr<Job>;

}  // namespace

struct Settler::Shared {
  Shared(Loop& loop, MeteringClient& metering, Journal& journal, Outbox& outbox,
         const SettlerOptions& options, Outbox* admissions)
      : loop(loop),
        metering(metering),
        journal(journal),
        outbox(outbox),
        admissions(admissions),
        options(options) {}

  // Call when the settlement, with the admission that it carries, can no longer be lost.
  void DropSlot(Job& job) {
    if (job.slot != nullptr) journal.Release(job.slot);
    job.slot = nullptr;
    if (job.op.has_admission() && admissions != nullptr) {
      admissions->Acknowledge(OutboxKey(job.op.request_id(), job.op.attempt()));
    }
  }

  // Any answer is final: the ledger has booked the settlement, or refused it for good and stored it
  // as evidence.
  void OnAnswer(Job& job, const billing::v1::MeterResult& answer) {
    if (!answer.ok()) {
      SettlementMetrics::Get().CountRefused(answer.denied_by(),
                                            job.recovered ? "recovered" : "live");
      log::Error("the ledger refused a settlement; the request is not charged",
                 {{"request_id", HexEncode(job.op.request_id())},
                  {"workspace", job.op.workspace_id()},
                  {"reason", billing::v1::DenyReason_Name(answer.denied_by())},
                  {"charged_nano_usd", answer.charged_nano_usd()}});
    }
    job.answer = answer;
    if (job.in_outbox) outbox.Acknowledge(job.outbox_key);
    if (job.on_answer) job.on_answer();
    Finish(job);
  }

  void GiveUp(Job& job) {
    log::Error("giving up on a settlement; the ledger charges the hold's last heartbeat",
               {{"request_id", HexEncode(job.op.request_id())}});
    outbox.MoveToQuarantine(job.outbox_key, job.op.SerializeAsString(), "gave_up");
    Finish(job);
  }

  void Finish(Job& job) {
    DropSlot(job);
    if (job.recovered) --recovering;
    job.changed.Set();
  }

  // Retries until the ledger answers. Static because it outlives its caller.
  static Task<void> Deliver(std::shared_ptr<Shared> shared, JobPointer job) {
    const int64_t started_us = SystemClock::Get().MonotonicUs();
    int64_t pause_ms = shared->options.first_pause_ms;
    while (!shared->stopped) {
      auto result = co_await shared->metering.Meter(job->op, shared->options.attempt_ms);
      if (shared->stopped) co_return;
      if (result.ok()) {
        shared->OnAnswer(*job, *result);
        co_return;
      }
      if (SystemClock::Get().MonotonicUs() - started_us > shared->options.give_up_ms * 1000) {
        shared->GiveUp(*job);
        co_return;
      }
      co_await shared->loop.Sleep(Jittered(pause_ms));
      pause_ms = std::min(pause_ms * 2, shared->options.longest_pause_ms);
    }
  }

  static void WriteToOutbox(const std::shared_ptr<Shared>& shared, const JobPointer& job) {
    job->in_outbox = true;
    job->changed.Reset();
    Loop* loop = &shared->loop;
    shared->outbox.Append(job->outbox_key, job->op.SerializeAsString(), [loop, job](bool durable) {
      loop->Post([job, durable] {
        job->written = durable;
        job->changed.Set();
      });
    });
  }

  Loop& loop;
  MeteringClient& metering;
  Journal& journal;
  Outbox& outbox;
  Outbox* const admissions;
  const SettlerOptions options;
  bool stopped = false;
  std::atomic<int64_t> recovering{0};
};

Settler::Settler(Loop& loop, MeteringClient& metering, Journal& journal, Outbox& outbox,
                 const SettlerOptions& options, Outbox* admissions)
    : shared_(std::make_shared<Shared>(loop, metering, journal, outbox, options, admissions)) {}

Settler::~Settler() { Stop(); }

void Settler::Stop() { shared_->stopped = true; }

Task<Settled> Settler::Settle(billing::v1::MeterOp op, JournalSlot* slot,
                              std::function<void()> on_answer) {
  std::shared_ptr<Shared> shared = shared_;
  auto job = std::make_shared<Job>(shared->loop, std::move(op), slot);
  job->on_answer = std::move(on_answer);
  shared->loop.Spawn(Shared::Deliver(shared, job));
  co_await job->changed.WaitFor(shared->options.patience_ms);
  if (!job->answer) {
    Shared::WriteToOutbox(shared, job);
    co_await job->changed.Wait();
    if (!job->answer && job->written == true) {
      shared->DropSlot(*job);
      co_return Settled{Durability::kOutbox, std::nullopt};
    }
    if (!job->answer) {
      job->in_outbox = false;
      job->changed.Reset();
      co_await job->changed.WaitFor(kWithoutDiskMs);
    }
  }
  if (!job->answer) co_return Settled{Durability::kNone, std::nullopt};
  co_return Settled{job->answer->ok() ? Durability::kLedger : Durability::kRefused,
                    job->answer->charged_nano_usd()};
}

Task<void> Settler::Release(billing::v1::MeterOp op, JournalSlot* slot,
                            std::function<void()> on_answer) {
  std::shared_ptr<Shared> shared = shared_;
  auto job = std::make_shared<Job>(shared->loop, std::move(op), slot);
  job->on_answer = std::move(on_answer);
  shared->loop.Spawn(Shared::Deliver(shared, job));
  co_await job->changed.WaitFor(shared->options.patience_ms);
}

void Settler::Recover() {
  size_t count = 0;
  auto start = [this, &count](JobPointer job) {
    ++shared_->recovering;
    ++count;
    job->recovered = true;
    shared_->loop.Spawn(Shared::Deliver(shared_, std::move(job)));
  };
  std::set<std::string> in_outbox;
  for (const auto& [key, payload] : shared_->outbox.recovered()) {
    billing::v1::MeterOp op;
    if (!op.ParseFromString(payload) || !IsSettlement(op, key)) {
      shared_->outbox.MoveToQuarantine(key, payload, "unparsable");
      continue;
    }
    auto job = std::make_shared<Job>(shared_->loop, std::move(op), nullptr);
    in_outbox.insert(std::exchange(job->outbox_key, key));
    job->in_outbox = true;
    start(std::move(job));
  }
  std::map<std::string, std::string> admitted;
  if (shared_->admissions != nullptr) admitted = shared_->admissions->recovered();
  for (const JournalEntry& entry : shared_->journal.recovered()) {
    auto job = std::make_shared<Job>(shared_->loop, RecoveredOp(entry), entry.slot);
    if (in_outbox.count(
            job->outbox_key)) {  // the request had ended; its settlement is in the outbox
      shared_->journal.Release(entry.slot);
      continue;
    }
    // The admission is kept until the ledger has answered.
    if (const auto found = admitted.find(job->outbox_key); found != admitted.end()) {
      if (!job->op.mutable_admission()->ParseFromString(found->second)) job->op.clear_admission();
      admitted.erase(found);
    }
    start(std::move(job));
  }
  DropAdmissions(admitted, in_outbox);
  if (count > 0) {
    log::Info("settling the requests of a previous process", {{"requests", count}});
  }
}

// Drops admissions of requests that the journal lacks, as after a crash of the machine. What these
// requests delivered is unknown, and the ledger may not know them.
void Settler::DropAdmissions(const std::map<std::string, std::string>& admissions,
                             const std::set<std::string>& in_outbox) {
  int64_t lost = 0;
  int64_t lost_nano_usd = 0;
  for (const auto& [key, payload] : admissions) {
    shared_->admissions->Acknowledge(key);
    billing::v1::Admission admission;
    if (in_outbox.count(key) != 0 || !admission.ParseFromString(payload)) continue;
    ++lost;
    lost_nano_usd += admission.authorized_nano_usd();
  }
  if (lost == 0) return;
  SettlementMetrics::Get().CountLostAdmissions(lost);
  log::Error(
      "requests admitted from leases are not charged because they are missing from the journal",
      {{"requests", lost}, {"at_most_nano_usd", lost_nano_usd}});
}

bool Settler::recovered() const { return shared_->recovering == 0; }

bool IsSettlement(const billing::v1::MeterOp& op, std::string_view key) {
  const bool has_key = key == op.request_id() || key == OutboxKey(op.request_id(), op.attempt());
  return op.has_settle() && has_key && !op.workspace_id().empty();
}

billing::v1::MeterOp RecoveredOp(const JournalEntry& entry) {
  billing::v1::MeterOp op;
  op.set_request_id(entry.request_id);
  op.set_workspace_id(entry.workspace_id);
  op.set_sequence(entry.sequence + kRecoveredSequenceGap);
  op.set_attempt(entry.attempt);
  billing::v1::SettleOp& settle = *op.mutable_settle();
  settle.set_engine_id(entry.engine_id);
  // An answer that is not streamed is delivered at its end, and then its slot is released.
  if (!entry.streamed || entry.usage.completion_tokens() == 0) {
    settle.set_outcome(billing::v1::OUTCOME_FAILED_BEFORE_OUTPUT);
    return op;
  }
  settle.set_outcome(billing::v1::OUTCOME_RECOVERED);
  *settle.mutable_usage() = entry.usage;
  settle.set_estimated(true);
  return op;
}

}  // namespace tollgate::inference_router
