// Compares, call by call, what callers were told with the ledger and with the engine's own count.
#pragma once

#include <cstdint>
#include <string>

#include "tests/chaos/load.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {

// What the calls of one or more loads came to.
struct Figures {
  int64_t complete = 0;
  int64_t refused = 0;    // ended in an error before any output: free
  int64_t cut = 0;        // ended after output
  int64_t no_answer = 0;  // the gateway was killed before it answered
  int64_t top_ups = 0;    // acknowledged
  int64_t top_ups_unknown = 0;
  int64_t expired = 0;  // holds that nothing but their time-out has ended
  int64_t entries = 0;  // verified
  int64_t whole = 0;    // answers that an engine made without streaming
  Figures& operator+=(const Figures& other);
};

// After Load::Stop. Failures of gtest name the calls that differ. Waits for holds until they must
// have ended: their time to live, and once more behind a start of billing.
Figures CompareWithLedger(Cluster& cluster, const EngineSim& engine, const Load& load,
                          int64_t hold_ttl_seconds);

// Afterwards, with all servers of the ledger's database running: whether the audit log has each
// top-up that the ledger has, once. On Citus entries come from the outbox; waits for them. Does
// nothing on SQLite.
void CompareWithAuditLog(const std::string& billing_sql);

}  // namespace tollgate::test
