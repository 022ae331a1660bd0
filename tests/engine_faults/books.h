// Compares, call by call, what callers received with the ledger and with the journals of the
// engines.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/engine_faults/callers.h"
#include "tests/engine_faults/engines.h"
#include "tests/support/cluster.h"

namespace tollgate::test {

// Totals of the calls.
struct FaultFigures {
  int64_t whole = 0;
  int64_t refused = 0;                    // an error status: free
  int64_t failed = 0;                     // error events in the stream
  int64_t left = 0;                       // by their callers
  int64_t retried = 0;                    // calls with more than one engine
  std::map<std::string, int64_t> errors;  // by status and code
  int64_t longest_wait_us = 0;
  int64_t slowest_us = 0;
  int64_t charged_nano_usd = 0;
  int64_t entries = 0;  // verified
};

// Call after Callers::Stop. gtest failures name the calls that differ.
FaultFigures CompareBooks(Cluster& cluster, const Callers& callers, const Journals& journals,
                          int64_t hold_ttl_seconds);

}  // namespace tollgate::test
