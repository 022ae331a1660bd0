// Moves audit entries from the outbox of a distributed ledger into the audit log
// (storage/audit_outbox.h), on its own thread and connection.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/base/clock.h"
#include "common/runtime/periodic_thread.h"
#include "common/sql/sql.h"
#include "services/billing/domain/operations.h"

namespace tollgate::billing {

class AuditMover {
 public:
  // wanted: whether the ledger is open and distributed. Called every second.
  AuditMover(sql::Database::Options options, const Clock& clock, std::function<bool()> wanted);
  ~AuditMover() { Stop(); }

  void Start();
  void Stop() { thread_.Stop(); }

  // Called after each commit of this process; never blocks.
  void OnCommitted(std::span<const Operation> operations);

 private:
  void Step();
  // Returns an empty string, or what went wrong.
  std::string Move();

  const sql::Database::Options options_;
  const Clock& clock_;
  const std::function<bool()> wanted_;
  std::unique_ptr<sql::Connection> connection_;
  std::atomic<bool> committed_ = false;  // commands, since the last search
  int64_t next_us_ = 0;                  // monotonic: next search without them, or after a failure
  bool failed_ = false;
  PeriodicThread thread_;
};

}  // namespace tollgate::billing
