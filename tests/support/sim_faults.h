// Faults that a simulated engine draws at random for its requests, and its journal, which tells
// what it was asked after it has been killed.
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
  // {"percent":30,"seed":7,"scripts":[…]}: of so many requests each has one of the scripts, above
  // its own. Anything else: no faults from here on.
  void Set(const Json& faults);
  // The script of the next request; null: none.
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
