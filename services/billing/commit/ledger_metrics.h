// Metrics and logs of the running ledger.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "services/billing/commit/group_commit.h"

namespace tollgate::billing {

// Sets the maximum age of the oldest commit missing on the report standby; nullopt: unknown.
void SetReportLag(std::optional<int64_t> lag_us);
// Counts a report by its database: "standby", "primary" or "primary_after_failure".
void CountReport(std::string_view database);

class LedgerMetrics : public GroupCommitObserver {
 public:
  LedgerMetrics();
  ~LedgerMetrics() override;
  void OnBatch(std::span<const Operation> operations, const Applied& applied,
               int64_t took_us) override;
  void OnSync(int64_t took_us) override;
  void OnQueue(size_t waiting) override;
  void OnError(const sql::SqlError& error) override;
  void OnRefused() override;
  void OnIsolated(const std::string& workspace, const sql::SqlError& error) override;
  void OnNode(int32_t node, const sql::SqlError* error) override;
  void OnFailing(size_t workspaces) override;
  void OnBroken(const std::string& workspace, const std::string& what) override;
  void SetOpenHolds(int64_t count);
  // Counts and logs jumps of a clock. Called regularly.
  void SetClocks(const LedgerClock::Ahead& ahead);
  void SetOpenDeadLetters(int64_t count);
  void SetFrozenByCheck(int64_t count);
  void SetInDoubt(int64_t count);
  void SetLeases(int64_t count, int64_t reserved_nano_usd);

 private:
  struct Metrics;
  // Counts overruns of requests that routers admitted from leases.
  void CountLeaseOverruns(std::span<const Operation> operations, const Applied& applied);
  void SetClock(size_t clock, int64_t ahead_us);
  std::unique_ptr<Metrics> metrics_;
};

}  // namespace tollgate::billing
