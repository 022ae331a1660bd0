// Runs `tollgate ledger distribute`.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/process.h"

namespace tollgate::test {

// Returns what it prints. url: the coordinator's.
inline std::string DistributeLedger(const std::string& url, const std::string& arguments) {
  const TempDir folder;
  const std::string out = folder.path() + "/out";
  const std::string command = BinaryPath("tollgate") + " ledger distribute --database '" + url +
                              "' " + arguments + " >" + out + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0)
      << ReadFile(out);  // NOLINT: a shell is what users have
  return ReadFile(out);
}

}  // namespace tollgate::test
