// Progress of a verification: in memory, and in the state file of a run that can be resumed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "services/billing/verify/verify.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {

struct VerifyProgress {
  std::string only;  // the requested workspace
  int64_t shard = 0;
  std::string workspace;                // done, unless state is set
  std::optional<WorkspaceState> state;  // state of the workspace being verified
  VerifyReport report;
};

// Empty if the file does not exist. Fails for a damaged file.
BasicResult<std::optional<VerifyProgress>, std::string> LoadProgress(const std::string& file);
// Replaces the file atomically. Returns an empty string, or what went wrong.
std::string SaveProgress(const std::string& file, const VerifyProgress& progress);

}  // namespace tollgate::billing
