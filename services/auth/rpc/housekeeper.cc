#include "services/auth/rpc/housekeeper.h"

#include <chrono>

#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/auth/admin/key_policy.h"
#include "services/auth/admin/workspace_admin.h"

namespace tollgate::auth {
namespace {

prometheus::Counter& Checkpoints(const char* result) {
  return metrics::Counter("tollgate_auth_audit_checkpoints_total",
                          "Signed checkpoints of the audit log, by result.", {{"result", result}});
}

prometheus::Gauge& RetiredKeys() {
  return metrics::Gauge("tollgate_auth_keys_of_retired_peppers",
                        "Keys that were made with a retired pepper and have not been used since.");
}

}  // namespace

Result<void> Housekeeper::Start() {
  const bool has_file = !options_.checkpoint_file.empty();
  if (has_file != !options_.checkpoint_key_file.empty()) {
    return Internal(
        "auth.audit_checkpoint_file and auth.audit_checkpoint_key_file need each other");
  }
  if (has_file) {
    auto opened =
        AuditCheckpointWriter::Open(options_.checkpoint_file, options_.checkpoint_key_file);
    if (!opened.ok()) return Internal("auth.audit_checkpoint_key_file: " + opened.error());
    checkpoints_ = std::move(*opened);
  }
  // Registers both results at 0, so that alerts see the first increase.
  for (const char* result : {"done", "failed"}) Checkpoints(result);
  RetiredKeys();
  thread_.Start("auth-housekeep", std::chrono::milliseconds(options_.period_ms),
                [this] { Step(); });
  return {};
}

std::string Housekeeper::Checkpoint() { return checkpoints_ ? checkpoints_->Write(store_) : ""; }

void Housekeeper::Step() {
  if (auto closed = WorkspaceAdmin(store_).CloseDue(prepare_close_); !closed) {
    log::Warn("workspaces were not closed; will retry", {{"error", closed.error().message}});
  }
  changed_();
  if (auto pruned = PruneUse(store_); !pruned) {
    log::Warn("old counts of key use were not deleted; will retry",
              {{"error", pruned.error().ToString()}});
  }
  if (!store_.options().retired_peppers.empty()) {
    if (const auto count = store_.KeysOfRetiredPeppers()) {
      RetiredKeys().Set(static_cast<double>(*count));
    }
  }
  const int64_t now_us = store_.clock().MonotonicUs();
  const bool due = now_us - checkpointed_us_ >= options_.checkpoint_ms * 1000;
  if (!checkpoints_ || (checkpointed_us_ != 0 && !due)) return;
  checkpointed_us_ = now_us;
  const std::string failed = Checkpoint();
  Checkpoints(failed.empty() ? "done" : "failed").Increment();
  if (failed.empty()) return;
  log::Error("the audit log checkpoint was not written; will retry",
             {{"file", options_.checkpoint_file}, {"reason", failed}});
}

}  // namespace tollgate::auth
