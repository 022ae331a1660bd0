// Periodic work of auth: closes workspaces that are due, deletes old counts of use, signs
// checkpoints of the audit log, counts keys of retired peppers. Every replica does all of it; each
// step is idempotent.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/runtime/periodic_thread.h"
#include "services/auth/storage/audit_checkpoints.h"
#include "services/auth/storage/auth_store.h"

namespace tollgate::auth {

class Housekeeper {
 public:
  struct Options {
    int64_t period_ms = 10'000;
    int64_t checkpoint_ms = 60'000;
    // Set both, or none for no checkpoints.
    std::string checkpoint_key_file = {};
    std::string checkpoint_file = {};
  };
  // Asks billing whether a workspace has no credit, holds or debts. May block.
  using PrepareClose = std::function<Result<bool>(const std::string& workspace)>;
  // changed: called after keys may have changed.
  Housekeeper(AuthStore& store, Options options, PrepareClose prepare_close,
              std::function<void()> changed)
      : store_(store),
        options_(std::move(options)),
        prepare_close_(std::move(prepare_close)),
        changed_(std::move(changed)) {}
  ~Housekeeper() { Stop(); }

  Result<void> Start();
  void Stop() { thread_.Stop(); }

  // Runs one round. Called by the thread and by tests.
  void Step();
  // Writes a checkpoint if a file is configured. Returns the error, or "".
  std::string Checkpoint();

 private:
  AuthStore& store_;
  const Options options_;
  const PrepareClose prepare_close_;
  const std::function<void()> changed_;
  std::optional<AuditCheckpointWriter> checkpoints_;
  int64_t checkpointed_us_ = 0;  // monotonic
  PeriodicThread thread_;
};

}  // namespace tollgate::auth
