// Metrics and logs of the running ledger.
#pragma once

#include <memory>

#include "services/billing/commit/group_commit.h"

namespace tollgate::billing {

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
  void SetOpenHolds(int64_t count);
  void SetOpenDeadLetters(int64_t count);

 private:
  struct Metrics;
  std::unique_ptr<Metrics> metrics_;
};

}  // namespace tollgate::billing
