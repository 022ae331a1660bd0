#include "services/billing/commit/report_standby.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/billing/commit/ledger_metrics.h"

namespace tollgate::billing {
namespace {

// Timeout for each server when the lag is read.
constexpr int kLookTimeoutMs = 2000;
// Samples of the primary's log. A sample older than these exceeds any allowed lag.
constexpr size_t kMostSamples = 3600;

sql::Database::Options ForLooks(sql::Database::Options options) {
  options.connections = 1;
  options.statement_timeout_ms = kLookTimeoutMs;
  return options;
}

}  // namespace

ReportStandby::ReportStandby(Options options, sql::Database::Options primary, const Clock& clock)
    : options_(std::move(options)), primary_options_(std::move(primary)), clock_(clock) {}

ReportStandby::~ReportStandby() { Stop(); }

Result<void> ReportStandby::Start() {
  auto primary = sql::Database::Open(ForLooks(primary_options_));
  auto standby = sql::Database::Open(ForLooks(options_.sql));
  auto reports = sql::Database::Open(options_.sql);
  if (!primary.ok()) return Fail{sql::ToError(primary.error())};
  if (!standby.ok()) return Fail{sql::ToError(standby.error())};
  if (!reports.ok()) return Fail{sql::ToError(reports.error())};
  for (const auto* database : {&*primary, &*standby}) {
    if ((*database)->dialect() == sql::Dialect::kPostgres) continue;
    return Internal("billing.reports_sql is for a standby of PostgreSQL");
  }
  primary_ = std::move(*primary);
  standby_ = std::move(*standby);
  reports_ = std::move(*reports);
  thread_ = std::thread([this] { Main(); });
  return {};
}

void ReportStandby::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

sql::Database* ReportStandby::Fresh() {
  const int64_t as_of_us = as_of_us_.load(std::memory_order_relaxed);
  if (as_of_us == 0) return nullptr;
  return clock_.MonotonicUs() - as_of_us <= options_.max_lag_ms * 1000 ? reports_.get() : nullptr;
}

void ReportStandby::Main() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    {
      // Stop does not wait for a hung server.
      const sql::CancelScope scope([this] {
        const std::lock_guard guard(mutex_);
        return stopping_;
      });
      Look();
    }
    lock.lock();
    wake_.wait_for(lock, std::chrono::milliseconds(options_.interval_ms),
                   [this] { return stopping_; });
  }
}

void ReportStandby::Look() {
  const int64_t asked_us = clock_.MonotonicUs();
  if (const auto end = ReadLogEnd(*primary_); end.ok()) written_.push_back({asked_us, *end});
  if (written_.size() > kMostSamples) written_.pop_front();
  const auto replayed = ReadLogEnd(*standby_);
  int64_t as_of_us = 0;
  if (replayed.ok()) {
    as_of_us = as_of_us_.load();
    // Finds the newest sample that the standby has.
    while (!written_.empty() && written_.front().end <= *replayed) {
      as_of_us = written_.front().at_us;
      written_.pop_front();
    }
  }
  as_of_us_ = as_of_us;
  const int64_t lag_us = clock_.MonotonicUs() - as_of_us;
  SetReportLag(as_of_us == 0 ? std::nullopt : std::optional<int64_t>(lag_us));
  const bool fresh = Fresh() != nullptr;
  if (fresh == std::exchange(was_fresh_, fresh)) return;
  if (fresh) return log::Info("the standby answers reports again");
  log::Warn("the standby for reports is not reachable or too far behind; the primary answers them",
            {{"error", replayed.ok() ? "" : replayed.error().message},
             {"lag_ms", as_of_us == 0 ? -1 : lag_us / 1000}});
}

sql::SqlResult<int64_t> ReportStandby::ReadLogEnd(sql::Database& database) {
  TRY(auto connection, database.Borrow());
  int64_t end = 0;
  TRY(
      connection->Query("SELECT CAST((CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "
                        "ELSE pg_current_wal_lsn() END) - CAST('0/0' AS pg_lsn) AS BIGINT)",
                        {}, [&](const sql::Row& row) { end = row.Int(0); }));
  return end;
}

}  // namespace tollgate::billing
