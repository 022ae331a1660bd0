#include "services/billing/commit/audit_mover.h"

#include <algorithm>
#include <utility>

#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/billing/storage/audit_outbox.h"
#include "services/billing/storage/background_connection.h"

namespace tollgate::billing {
namespace {

constexpr auto kPeriod = std::chrono::seconds(1);
// Pause between searches for entries that other replicas left behind, since each search queries all
// nodes. Also the pause after a failure: each attempt that meets a hung node leaves a session open
// at the coordinator.
constexpr int64_t kPauseUs = 10'000'000;

prometheus::Counter& Moved() {
  static prometheus::Counter& counter = metrics::Counter(
      "tollgate_billing_audit_moved_total",
      "Audit entries of commands moved from the outbox of a distributed ledger to the audit log.");
  return counter;
}

prometheus::Counter& Failures() {
  static prometheus::Counter& counter = metrics::Counter(
      "tollgate_billing_audit_move_failures_total",
      "Failed attempts to move audit entries from the outbox of a distributed ledger to the audit "
      "log. Retried after 10 s.");
  return counter;
}

}  // namespace

AuditMover::AuditMover(sql::Database::Options options, const Clock& clock,
                       std::function<bool()> wanted)
    : options_(std::move(options)), clock_(clock), wanted_(std::move(wanted)) {
  (void)Moved();
  (void)Failures();  // alerts see the first increase
}

void AuditMover::Start() {
  thread_.Start("audit-mover", kPeriod, [this] { Step(); });
}

void AuditMover::OnCommitted(std::span<const Operation> operations) {
  if (std::ranges::any_of(operations, IsAudited)) committed_ = true;
}

void AuditMover::Step() {
  const bool due = clock_.MonotonicUs() >= next_us_;
  if (!wanted_() || !(due || (committed_ && !failed_))) return;
  committed_ = false;
  next_us_ = clock_.MonotonicUs() + kPauseUs;
  const std::string failed = Move();
  failed_ = !failed.empty();
  if (!failed_) return;
  Failures().Increment();
  log::Warn("audit entries were not moved out of the outbox, retrying", {{"reason", failed}});
}

std::string AuditMover::Move() {
  if (auto connected = EnsureConnected(options_, &connection_); !connected.ok()) {
    return connected.error().message;
  }
  const sql::CancelScope scope([this] { return thread_.stopping(); });
  auto moved = MoveAuditEntries(*connection_);
  if (!moved.ok()) return thread_.stopping() ? "" : moved.error().message;
  for (int64_t i = 0; i < *moved; ++i) Moved().Increment();
  if (*moved > 0) next_us_ = 0;  // there may be more
  return "";
}

}  // namespace tollgate::billing
