// Brings the end of each request to the ledger, exactly once as the ledger sees it: try, and when
// the answer does not come at once, write it to the outbox and keep trying until it does. One per
// loop. spec: reliability.md 1.6, decisions 24.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/clients/clients.h"
#include "common/runtime/loop.h"
#include "services/inference_router/settlement/journal.h"
#include "services/inference_router/settlement/outbox.h"

namespace tollgate::inference_router {

enum class Durability {
  kLedger,  // the ledger has answered
  kOutbox,  // on this machine's disk; the ledger gets it when it can
  kNone,    // neither, after a long wait: disk full and ledger away. It is still being tried.
};

struct Settled {
  Durability durability = Durability::kNone;
  // What was charged, when the ledger has answered.
  std::optional<int64_t> charged_nano_usd;
};

struct SettlerOptions {
  // How long the ledger may take before the outbox is written.
  int64_t patience_ms = 50;
  // Deadline of one attempt; then pauses between the attempts, doubling.
  int64_t attempt_ms = 2000;
  int64_t first_pause_ms = 50;
  int64_t longest_pause_ms = 2000;
};

class Settler {
 public:
  Settler(Loop& loop, MeteringClient& metering, Journal& journal, Outbox& outbox,
          const SettlerOptions& options = {});
  ~Settler();

  // Settles what was used. Returns when the record is durable. The slot is given back once nothing
  // can be lost any more; the caller must not touch it after the call.
  Task<Settled> Settle(billing::v1::MeterOp op, JournalSlot* slot);
  // Gives the hold back: nothing is charged. Waits for the ledger for a moment only, so that the
  // caller's next request finds its credit free; the journal's slot is what survives a crash.
  Task<void> Release(billing::v1::MeterOp op, JournalSlot* slot);

  // What an earlier process left behind: the outbox first, then what was in flight. Runs in the
  // background; done() tells when the ledger has answered all of it.
  void Recover();
  bool recovered() const;
  // Ends the retries: the process is about to stop. On the loop.
  void Stop();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// The settlement of a request that a crash cut off: its counted usage, or nothing when no engine
// had taken it.
billing::v1::MeterOp RecoveredOp(const JournalEntry& entry);

}  // namespace tollgate::inference_router
