#include "services/billing/commit/ledger_metrics.h"

#include <array>
#include <cstdlib>

#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/billing/domain/results.h"

namespace tollgate::billing {
namespace {

constexpr size_t kKinds = kOperationNames.size();
// Indexed by Deny; null: no reason has this number.
constexpr std::array<const char*, 23> kResults = {"ok",
                                                  "no_credit",
                                                  "cap",
                                                  "held",
                                                  "frozen",
                                                  "id_reuse",
                                                  "closed",
                                                  "invalid",
                                                  "quota",
                                                  "frozen_by_check",
                                                  "unknown_workspace",
                                                  "same_person",
                                                  "unknown_dead_letter",
                                                  "unavailable",
                                                  "no_lease",
                                                  "clock",
                                                  nullptr,
                                                  nullptr,
                                                  nullptr,
                                                  nullptr,
                                                  "idempotency_body",
                                                  "idempotency_running",
                                                  "idempotency_done"};
// Indexed by sql::ErrorKind.
constexpr std::array<const char*, 8> kErrors = {"unique",     "constraint",     "retry",
                                                "connection", "commit_unknown", "other",
                                                "locked",     "node_lost"};
constexpr std::array<const char*, 2> kClocks = {"process", "database"};
// A clock this far from the ledger's time has jumped.
constexpr int64_t kClockStepUs = 1'000'000;

}  // namespace

struct LedgerMetrics::Metrics {
  // Null if the operation cannot have this result.
  std::array<std::array<prometheus::Counter*, kResults.size()>, kKinds> operations{};
  std::array<prometheus::Counter*, kErrors.size()> errors{};
  prometheus::Gauge& open_dead_letters = metrics::Gauge(
      "tollgate_billing_dead_letters_open", "Refused settlements that are not resolved yet.");
  prometheus::Histogram& batch = metrics::Histogram("tollgate_billing_batch_operations",
                                                    "Operations in one commit of the ledger.",
                                                    {1, 2, 4, 8, 16, 32, 64, 128, 256});
  prometheus::Histogram& commit = metrics::Histogram(
      "tollgate_billing_commit_seconds", "Time from the start of a batch to the end of its commit.",
      metrics::LatencyBounds());
  prometheus::Histogram& sync = metrics::Histogram(
      "tollgate_billing_sync_seconds", "Time of one deferred sync of the database's log.",
      metrics::LatencyBounds());
  prometheus::Gauge& queue =
      metrics::Gauge("tollgate_billing_queue_operations", "Operations waiting for a batch.");
  prometheus::Gauge& open_holds = metrics::Gauge("tollgate_billing_open_holds", "Open holds.");
  prometheus::Counter& overrun =
      metrics::Counter("tollgate_billing_overrun_nano_usd_total",
                       "Cost above the authorized amount, paid by the operator, in nano-USD.");
  prometheus::Counter& lease_overrun = metrics::Counter(
      "tollgate_billing_lease_overrun_nano_usd_total",
      "Overrun of requests that routers admitted from leases: cost that neither the lease nor "
      "credit covered at the settlement.");
  prometheus::Gauge& leases = metrics::Gauge("tollgate_billing_leases", "Open leases of credit.");
  prometheus::Gauge& leased = metrics::Gauge("tollgate_billing_lease_reserved_nano_usd",
                                             "Credit that open leases reserve, in nano-USD.");
  prometheus::Counter& charged = metrics::Counter("tollgate_billing_charged_nano_usd_total",
                                                  "Charged to customers, in nano-USD.");
  prometheus::Counter& violations =
      metrics::Counter("tollgate_billing_invariant_violations_total",
                       "Operations refused because they would break an invariant. Page.");
  prometheus::Counter& refused =
      metrics::Counter("tollgate_billing_refused_calls_total",
                       "Calls refused at once: queue full or database unreachable.");
  prometheus::Counter& isolated =
      metrics::Counter("tollgate_billing_isolated_workspaces_total",
                       "Workspaces that were isolated because their batches failed.");
  prometheus::Gauge& isolated_now =
      metrics::Gauge("tollgate_billing_workspaces_isolated",
                     "Isolated workspaces whose batches failed within the last five minutes.");
  prometheus::Counter& frozen =
      metrics::Counter("tollgate_billing_frozen_workspaces_total",
                       "Workspaces frozen because wallet and entries contradict each other. Page.");
  prometheus::Gauge& frozen_now =
      metrics::Gauge("tollgate_billing_workspaces_frozen_by_check",
                     "Workspaces frozen because wallet and entries contradict each other.");
  prometheus::Gauge& in_doubt = metrics::Gauge(
      "tollgate_billing_transactions_in_doubt",
      "Ledger on Citus: transactions over several servers that have been prepared for more than "
      "10 s. Their rows are locked until Citus ends them.");
  std::array<prometheus::Gauge*, kClocks.size()> clock_ahead{};
  std::array<prometheus::Counter*, kClocks.size()> clock_steps{};
  std::array<bool, kClocks.size()> clock_stepped{};
};

namespace {
prometheus::Counter& Operations(size_t kind, Deny result) {
  return metrics::Counter(
      "tollgate_billing_operations_total", "Operations by kind and result.",
      {{"kind", kOperationNames[kind]}, {"result", kResults[static_cast<size_t>(result)]}});
}
prometheus::Counter& DeadLetters(Deny reason) {
  return metrics::Counter("tollgate_billing_dead_letters_total",
                          "Settlements that the ledger refused and keeps as dead letters.",
                          {{"reason", kResults[static_cast<size_t>(reason)]}});
}
}  // namespace

namespace {

prometheus::Counter& Reports(std::string_view database) {
  return metrics::Counter(
      "tollgate_billing_reports_total",
      "Reports read with billing.reports_sql set, by database: standby, primary "
      "(the standby was too far behind), or primary_after_failure.",
      {{"database", std::string(database)}});
}

}  // namespace

void SetReportLag(std::optional<int64_t> lag_us) {
  static prometheus::Gauge& gauge = metrics::Gauge(
      "tollgate_billing_report_standby_lag_seconds",
      "Maximum age of the oldest commit that the standby for reports lacks. -1: unknown, or no "
      "standby.");
  gauge.Set(lag_us ? static_cast<double>(*lag_us) / 1e6 : -1.0);
}

void CountReport(std::string_view database) { Reports(database).Increment(); }

LedgerMetrics::LedgerMetrics() : metrics_(std::make_unique<Metrics>()) {
  for (size_t kind = 0; kind < kKinds; ++kind) {
    for (size_t result = 0; result < kResults.size(); ++result) {
      if (!CanResultIn(kind, static_cast<Deny>(result))) continue;
      metrics_->operations[kind][result] = &Operations(kind, static_cast<Deny>(result));
    }
  }
  SetReportLag(std::nullopt);
  for (const char* database : {"standby", "primary", "primary_after_failure"}) {
    (void)Reports(database);
  }
  for (const Deny reason : {Deny::kIdReuse, Deny::kClosed, Deny::kInvalid}) {
    (void)DeadLetters(reason);  // alerts see the first increase
  }
  for (size_t i = 0; i < kErrors.size(); ++i) {
    metrics_->errors[i] = &metrics::Counter("tollgate_billing_database_errors_total",
                                            "Failed batches by class.", {{"class", kErrors[i]}});
  }
  for (size_t i = 0; i < kClocks.size(); ++i) {
    metrics_->clock_ahead[i] =
        &metrics::Gauge("tollgate_billing_clock_step_seconds",
                        "How far a clock is ahead of the ledger's time; negative: behind.",
                        {{"clock", kClocks[i]}});
    metrics_->clock_steps[i] =
        &metrics::Counter("tollgate_billing_clock_steps_total",
                          "Times that a clock was found more than a second off the ledger's time.",
                          {{"clock", kClocks[i]}});
  }
}

LedgerMetrics::~LedgerMetrics() = default;

void LedgerMetrics::OnIsolated(const std::string& workspace, const sql::SqlError& error) {
  metrics_->isolated.Increment();
  log::Warn("the ledger of one workspace cannot be written; other workspaces are not affected",
            {{"workspace", workspace}, {"error", error.message}});
}

void LedgerMetrics::OnNode(int32_t node, const sql::SqlError* error) {
  if (error == nullptr) {
    log::Info("a node of the ledger's database answers again", {{"group", node}});
  } else {
    log::Warn("a node of the ledger's database does not answer; operations on its data are refused",
              {{"group", node}, {"error", error->message}});
  }
}

void LedgerMetrics::OnFailing(size_t workspaces) {
  metrics_->isolated_now.Set(static_cast<double>(workspaces));
}

void LedgerMetrics::OnBroken(const std::string& workspace, const std::string& what) {
  metrics_->frozen.Increment();
  log::Error(
      "a workspace is frozen: its wallet and entries contradict each other; run tollgate "
      "verify-ledger",
      {{"workspace", workspace}, {"what", what}});
}

void LedgerMetrics::SetClocks(const LedgerClock::Ahead& ahead) {
  SetClock(0, ahead.process_us);
  if (ahead.database_us) SetClock(1, *ahead.database_us);
}

void LedgerMetrics::SetClock(size_t clock, int64_t ahead_us) {
  metrics_->clock_ahead[clock]->Set(static_cast<double>(ahead_us) / 1e6);
  const bool stepped = std::abs(ahead_us) > kClockStepUs;
  if (stepped && !metrics_->clock_stepped[clock]) {
    metrics_->clock_steps[clock]->Increment();
    log::Error("a clock has jumped; the ledger's time follows it slowly. Correct the clock",
               {{"clock", kClocks[clock]}, {"ahead_ms", ahead_us / 1000}});
  }
  metrics_->clock_stepped[clock] = stepped;
}

void LedgerMetrics::OnBatch(std::span<const Operation> operations, const Applied& applied,
                            int64_t took_us) {
  metrics_->batch.Observe(static_cast<double>(operations.size()));
  metrics_->commit.Observe(static_cast<double>(took_us) / 1e6);
  for (size_t i = 0; i < operations.size(); ++i) {
    const size_t kind = operations[i].index();
    const Deny result = applied.replies[i].denied_by;
    prometheus::Counter* counter = metrics_->operations[kind][static_cast<size_t>(result)];
    if (counter == nullptr) counter = &Operations(kind, result);  // missing in results.h
    counter->Increment();
    if (result == Deny::kIdReuse) {
      log::Warn("a request id was reused with another body",
                {{"kind", kOperationNames[kind]},
                 {"request_id", RequestIdOf(operations[i]).ToHex()},
                 {"workspace", WorkspaceOf(operations[i])}});
    }
  }
  int64_t overrun_nano_usd = 0;
  int64_t charged_nano_usd = 0;
  for (const Entry& entry : applied.entries) {
    if (entry.credit != Account::kRevenue) continue;
    (entry.debit == Account::kOverrun ? overrun_nano_usd : charged_nano_usd) +=
        entry.amount_nano_usd;
  }
  if (overrun_nano_usd > 0) {
    metrics_->overrun.Increment(static_cast<double>(overrun_nano_usd));
    CountLeaseOverruns(operations, applied);
  }
  if (charged_nano_usd > 0) {
    metrics_->charged.Increment(static_cast<double>(charged_nano_usd));
  }
  for (const DeadLetter& letter : applied.dead_letters) {
    DeadLetters(letter.reason).Increment();
    metrics_->open_dead_letters.Increment();
    log::Error("a settlement was refused and kept as a dead letter: nothing was charged for it",
               {{"request_id", letter.id.ToHex()},
                {"workspace", letter.workspace},
                {"number", letter.number},
                {"reason", kResults[static_cast<size_t>(letter.reason)]},
                {"settle", letter.operation}});
  }
  metrics_->open_dead_letters.Decrement(static_cast<double>(applied.resolved_dead_letters.size()));
  for (const std::string& violation : applied.violations) {
    metrics_->violations.Increment();
    log::Error("the ledger refused an operation that breaks an invariant", {{"what", violation}});
  }
  for (const std::string& workspace : applied.frozen) OnBroken(workspace, "an invariant is broken");
}

void LedgerMetrics::CountLeaseOverruns(std::span<const Operation> operations,
                                       const Applied& applied) {
  for (size_t i = 0; i < operations.size(); ++i) {
    if (AdmissionOf(operations[i]) == nullptr || !applied.replies[i].ok) continue;
    const std::string id = RequestIdOf(operations[i]).ToBytes();
    int64_t nano_usd = 0;
    for (const Entry& entry : applied.entries) {
      if (entry.kind == EntryKind::kOverrun && entry.debit == Account::kOverrun &&
          entry.request == id) {
        nano_usd += entry.amount_nano_usd;
      }
    }
    if (nano_usd == 0) continue;
    metrics_->lease_overrun.Increment(static_cast<double>(nano_usd));
    log::Warn("a request that a router admitted from a lease was not covered by credit",
              {{"workspace", WorkspaceOf(operations[i])},
               {"request_id", RequestIdOf(operations[i]).ToHex()},
               {"overrun_nano_usd", nano_usd}});
  }
}

void LedgerMetrics::SetLeases(int64_t count, int64_t reserved_nano_usd) {
  metrics_->leases.Set(static_cast<double>(count));
  metrics_->leased.Set(static_cast<double>(reserved_nano_usd));
}

void LedgerMetrics::OnSync(int64_t took_us) {
  metrics_->sync.Observe(static_cast<double>(took_us) / 1e6);
}

void LedgerMetrics::OnQueue(size_t waiting) { metrics_->queue.Set(static_cast<double>(waiting)); }

void LedgerMetrics::OnError(const sql::SqlError& error) {
  metrics_->errors[static_cast<size_t>(error.kind)]->Increment();
  if (error.kind == sql::ErrorKind::kRetry) return;
  log::Warn("a ledger batch failed", {{"error", error.message}});
}

void LedgerMetrics::OnRefused() { metrics_->refused.Increment(); }

void LedgerMetrics::SetOpenDeadLetters(int64_t count) {
  metrics_->open_dead_letters.Set(static_cast<double>(count));
}

void LedgerMetrics::SetFrozenByCheck(int64_t count) {
  metrics_->frozen_now.Set(static_cast<double>(count));
}

void LedgerMetrics::SetInDoubt(int64_t count) {
  if (count > 0 && metrics_->in_doubt.Value() == 0) {
    log::Warn(
        "transactions over several servers of the ledger are in doubt; Citus ends them after "
        "citus.recover_2pc_interval, recover_prepared_transactions() at once",
        {{"transactions", count}});
  }
  metrics_->in_doubt.Set(static_cast<double>(count));
}

void LedgerMetrics::SetOpenHolds(int64_t count) {
  metrics_->open_holds.Set(static_cast<double>(count));
}

}  // namespace tollgate::billing
