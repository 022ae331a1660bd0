// Delivers the settlement of each request to the ledger, which applies it exactly once. If the
// ledger does not answer immediately, the settlement is written to the outbox and retried until the
// ledger answers. One per loop. See docs/design/ledger.md 6, decision 24.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/clients/clients.h"
#include "common/runtime/loop.h"
#include "services/inference_router/settlement/journal.h"
#include "services/inference_router/settlement/outbox.h"

namespace tollgate::inference_router {

enum class Durability {
  kLedger,  // booked
  kOutbox,  // on the local disk; delivered to the ledger later
  // The ledger has refused the settlement for good: the request is not charged, and the ledger
  // keeps the settlement as a dead letter.
  kRefused,
  kNone,  // neither, after a long wait: disk full and ledger unreachable; still retried
};

struct Settled {
  Durability durability = Durability::kNone;
  // Amount that the ledger has charged for the request; empty if it has not answered.
  std::optional<int64_t> charged_nano_usd;
};

struct SettlerOptions {
  // Time to wait for the ledger before the settlement is written to the outbox.
  int64_t patience_ms = 50;
  // Deadline of one attempt, and the range of the delay between attempts, which doubles.
  int64_t attempt_ms = 2000;
  int64_t first_pause_ms = 50;
  int64_t longest_pause_ms = 2000;
  // A settlement without an answer from the ledger for this long goes to the quarantine. Equals the
  // ledger's window for late settlements (docs/design/ledger.md 5).
  int64_t give_up_ms = 24ll * 3600 * 1000;
};

class Settler {
 public:
  // admissions: the file of requests whose operations may carry an admission (MeterOp.admission),
  // or null.
  Settler(Loop& loop, MeteringClient& metering, Journal& journal, Outbox& outbox,
          const SettlerOptions& options = {}, Outbox* admissions = nullptr);
  ~Settler();

  // Settles the usage in `op`. Returns when the settlement is durable. Takes over the slot and
  // releases it once the settlement cannot be lost. on_answer: called when the ledger has answered,
  // which may be later.
  Task<Settled> Settle(billing::v1::MeterOp op, JournalSlot* slot,
                       std::function<void()> on_answer = {});
  // Releases the hold: sends a settle with OUTCOME_FAILED_BEFORE_OUTPUT, which the ledger books as
  // a void. Waits for the ledger at most patience_ms, so that the credit is usually free for the
  // client's next request. Takes over the slot and keeps it until the ledger answers, so that after
  // a crash the next start repeats the release.
  Task<void> Release(billing::v1::MeterOp op, JournalSlot* slot,
                     std::function<void()> on_answer = {});

  // Settles the requests of a previous process: the outbox first, then the journal. Runs in the
  // background until recovered().
  void Recover();
  bool recovered() const;
  // Stops the retries at the end of the process. Call on the loop.
  void Stop();

 private:
  void DropAdmissions(const std::map<std::string, std::string>& admissions,
                      const std::set<std::string>& in_outbox);

  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// Whether an outbox record with this key (OutboxKey) is a settlement and matches the key.
bool IsSettlement(const billing::v1::MeterOp& op, std::string_view key);
// The settlement of a request that a crash interrupted: its counted usage, or a release if no part
// of its answer was delivered (decision 52).
billing::v1::MeterOp RecoveredOp(const JournalEntry& entry);

}  // namespace tollgate::inference_router
