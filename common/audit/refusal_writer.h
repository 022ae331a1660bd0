// Writes the refused calls of the process to an audit log, on a thread of its own.
#pragma once

#include <vector>

#include "common/audit/log.h"
#include "common/audit/refused_calls.h"
#include "common/base/clock.h"
#include "common/runtime/periodic_thread.h"

namespace tollgate::audit {

class RefusalWriter {
 public:
  // The database must outlive it.
  RefusalWriter(sql::Database& database, const Tables& tables, const Clock& clock,
                RefusedCalls& calls = RefusedCalls::OfProcess())
      : database_(database), tables_(tables), clock_(clock), calls_(calls) {}
  ~RefusalWriter() { Stop(); }

  void Start();
  // Writes everything that waits, due or not, if the database can be reached.
  void Stop();

  // One round. Entries that cannot be written are kept for the next round. If the connection is
  // lost during a commit, an entry may be written twice.
  void Step();

 private:
  void Collect(bool all);
  void Write();

  sql::Database& database_;
  const Tables tables_;
  const Clock& clock_;
  RefusedCalls& calls_;
  std::vector<Record> waiting_;  // used by the thread only
  bool failing_ = false;
  PeriodicThread thread_;
};

}  // namespace tollgate::audit
