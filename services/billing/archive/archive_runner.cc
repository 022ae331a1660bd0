#include "services/billing/archive/archive_runner.h"

#include <chrono>

#include "common/base/try.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/billing/archive/archive.h"
#include "services/billing/storage/background_connection.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

prometheus::Counter& ArchiveFailures() {
  static prometheus::Counter& counter =
      metrics::Counter("tollgate_billing_archive_failures_total",
                       "Runs that could not archive the closed months of the ledger.");
  return counter;
}

prometheus::Counter& Months() {
  static prometheus::Counter& counter = metrics::Counter(
      "tollgate_billing_archived_months_total", "Months of the ledger that were archived.");
  return counter;
}

int32_t MonthsBefore(int32_t month, int count) {
  const int32_t number = month / 100 * 12 + month % 100 - 1 - count;
  return number / 12 * 100 + number % 12 + 1;
}

// Returns false if a run of this day was started before.
SqlResult<bool> Claim(Connection& db, int64_t now_us) {
  auto claimed =
      db.Execute("INSERT INTO archive_run (day, at_us) VALUES ($1, $2)", {UtcDay(now_us), now_us});
  if (claimed.ok()) return true;
  if (claimed.error().kind == sql::ErrorKind::kUnique) return false;
  return Fail{std::move(claimed).error()};
}

// Returns 0 if no month is archived.
SqlResult<int32_t> NewestArchived(Connection& db) {
  int32_t month = 0;
  TRY(db.Query("SELECT max(month) FROM archive", {},
               [&](const Row& row) { month = static_cast<int32_t>(row.Int(0)); }));
  return month;
}

}  // namespace

ArchiveRunner::ArchiveRunner(Options options, std::function<int64_t()> now_us,
                             std::function<bool()> ready)
    : options_(std::move(options)), now_us_(std::move(now_us)), ready_(std::move(ready)) {
  (void)ArchiveFailures();  // alerts see the first increase
  (void)Months();
}

Result<void> ArchiveRunner::Start() {
  if (options_.folder.empty()) return Internal("billing.retention_months requires archive_folder");
  thread_ = std::thread([this] { Main(); });
  return {};
}

void ArchiveRunner::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool ArchiveRunner::Sleep(int64_t ms) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_; });
}

void ArchiveRunner::Main() {
  for (int64_t wait_ms = options_.first_ms; Sleep(wait_ms); wait_ms = options_.interval_ms) {
    if (!ready_()) continue;
    const std::string failed = Run(now_us_());
    if (failed.empty()) continue;
    ArchiveFailures().Increment();
    log::Error("closed months of the ledger could not be archived, retrying tomorrow",
               {{"folder", options_.folder}, {"error", failed}});
  }
}

std::string ArchiveRunner::Run(int64_t now_us) {
  const int32_t before = MonthsBefore(UtcMonth(now_us), options_.months);
  std::unique_ptr<sql::Connection> db;
  if (auto connected = EnsureConnected(options_.sql, &db); !connected.ok()) {
    return connected.error().message;
  }
  auto newest = NewestArchived(*db);
  if (!newest.ok()) return newest.error().message;
  if (finished_ && *newest >= MonthsBefore(before, 1)) return "";
  auto claimed = Claim(*db, now_us);
  if (!claimed.ok()) return claimed.error().message;
  if (!*claimed) return "";
  finished_ = false;
  ArchiveOptions archive;
  archive.before = before;
  archive.folder = options_.folder;
  archive.actor = "tollgate-billing";
  archive.now_us = now_us;
  archive.stop = [this] {
    const std::lock_guard lock(mutex_);
    return stopping_;
  };
  auto archived = ArchiveLedger(*db, archive);
  if (!archived.ok()) return archived.error().message;
  finished_ = true;
  for (const ArchivedMonth& month : *archived) {
    Months().Increment();
    log::Info("a month of the ledger is archived", {{"month", month.month},
                                                    {"entries", month.entries},
                                                    {"holds", month.holds},
                                                    {"usage_records", month.usage_records}});
  }
  return "";
}

}  // namespace tollgate::billing
