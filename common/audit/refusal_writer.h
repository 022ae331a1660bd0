// Writes the refused calls of the process into an audit log, from a thread of its own.
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
  // Writes what waits, also what is not due yet, if the database can be reached.
  void Stop();

  // One round. What cannot be written is kept for the next one; an entry is written twice at worst,
  // when the connection is lost during a commit.
  void Step();

 private:
  void Collect(bool all);
  void Write();

  sql::Database& database_;
  const Tables tables_;
  const Clock& clock_;
  RefusedCalls& calls_;
  std::vector<Record> waiting_;  // of the thread
  bool failing_ = false;
  PeriodicThread thread_;
};

}  // namespace tollgate::audit
