// Compares, call by call, what callers received with the ledger and with the engine's own count.
#pragma once

#include <cstdint>
#include <string>

#include "tests/chaos/load.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {

// Totals of one or more loads.
struct Figures {
  int64_t complete = 0;
  int64_t refused = 0;    // ended in an error before any output: free
  int64_t cut = 0;        // ended after output
  int64_t no_answer = 0;  // the gateway was killed before it answered
  int64_t top_ups = 0;    // acknowledged
  int64_t top_ups_unknown = 0;
  int64_t expired = 0;  // holds that ended by expiry only
  int64_t entries = 0;  // verified
  int64_t whole = 0;    // answers that an engine sent without streaming
  Figures& operator+=(const Figures& other);
};

// Call after Load::Stop. gtest failures name the calls that differ. Waits until open holds must
// have ended: their time to live, and once more after a start of billing.
Figures CompareWithLedger(Cluster& cluster, const EngineSim& engine, const Load& load,
                          int64_t hold_ttl_seconds);

// Call afterwards, with all servers of the ledger's database running: checks that the audit log has
// each top-up of the ledger once. On Citus it waits for the entries of the outbox. Does nothing on
// SQLite.
void CompareWithAuditLog(const std::string& billing_sql);

}  // namespace tollgate::test
