// Faults that a simulated engine draws at random for its requests, and its journal, which records
// its requests even when it is killed.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/json.h"
#include "tests/support/sim_plan.h"

namespace tollgate::test {

class SimFaults {
 public:
  // {"percent":30,"seed":7,"scripts":[…]}: this percentage of requests each get one of the scripts,
  // above their own. Anything else ends the faults.
  void Set(const Json& faults);
  // Script of the next request; null: none.
  const Json& Next();

 private:
  int64_t percent_ = 0;
  std::vector<Json> scripts_;
  std::mt19937 random_;
};

// Adds a line to the file, in one write.
void WriteToJournal(const std::string& file, const std::string& engine, const SimRequest& request,
                    const SimPlan& plan);

}  // namespace tollgate::test
