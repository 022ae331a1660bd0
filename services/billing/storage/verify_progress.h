// How far a verification has come: in memory, and in the state file of a run that may be resumed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/result.h"
#include "services/billing/storage/verify.h"
#include "services/billing/storage/verify_state.h"

namespace tollgate::billing {

struct VerifyProgress {
  std::string only;  // the workspace that was asked for
  int64_t shard = 0;
  std::string workspace;                // done, unless state is set
  std::optional<WorkspaceState> state;  // of the workspace that was being verified
  VerifyReport report;
};

// Empty: there is no such file. Fails for a damaged one.
BasicResult<std::optional<VerifyProgress>, std::string> LoadProgress(const std::string& file);
// Replaces the file as a whole. Returns what went wrong, or nothing.
std::string SaveProgress(const std::string& file, const VerifyProgress& progress);

}  // namespace tollgate::billing
