// Opens the settlement files of a router together: the journal `inflight`, the `outbox`,
// `admissions` (requests admitted from a lease, until the ledger knows them), and
// `settlement-state`, which names journal and outbox and is written and flushed separately. So the
// router notices when a file is gone, empty, damaged, or replaced by another or older one: it
// counts and logs an error and continues with a new file. See docs/design/ledger.md 6.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "services/inference_router/settlement/journal.h"
#include "services/inference_router/settlement/outbox.h"

namespace tollgate::inference_router {

// The content of the state file.
struct SettlementState {
  int64_t generation = 0;  // the last start's
  std::string outbox_id, journal_id, boot_id;
  // The router was shut down in order, with nothing running and nothing unacknowledged.
  bool clean = false;

  std::string Encode() const;
  static std::optional<SettlementState> Decode(const std::string& text);
};

class SettlementFiles {
 public:
  // boot_id: 16 bytes; empty: the running kernel's. The folder must exist.
  static Result<std::unique_ptr<SettlementFiles>> Open(const std::string& folder,
                                                       std::string boot_id = "");

  Journal& journal() { return *journal_; }
  Outbox& outbox() { return *outbox_; }
  Outbox& admissions() { return *admissions_; }
  // Call at the end of an orderly shutdown: writes to the state file whether anything is left.
  void MarkStopped();

 private:
  explicit SettlementFiles(const std::string& folder) : state_path_(folder + "/settlement-state") {}
  bool WriteState() const;

  const std::string state_path_;
  SettlementState state_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<Outbox> admissions_;
};

}  // namespace tollgate::inference_router
