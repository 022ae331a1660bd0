// Moves audit entries out of the outbox of a distributed ledger into the audit log
// (storage/audit_outbox.h), on a thread and a connection of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/clock.h"
#include "common/runtime/periodic_thread.h"
#include "common/sql/sql.h"

namespace tollgate::billing {

class AuditMover {
 public:
  // wanted: whether the ledger is there and distributed; called each second.
  AuditMover(sql::Database::Options options, const Clock& clock, std::function<bool()> wanted);
  ~AuditMover() { Stop(); }

  void Start();
  void Stop() { thread_.Stop(); }

 private:
  void Step();
  // Empty, or what went wrong.
  std::string Move();

  const sql::Database::Options options_;
  const Clock& clock_;
  const std::function<bool()> wanted_;
  std::unique_ptr<sql::Connection> connection_;
  int64_t next_us_ = 0;  // monotonic; after a failure
  PeriodicThread thread_;
};

}  // namespace tollgate::billing
