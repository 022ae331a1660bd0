// Keeps the hold of one request ahead of its tokens. Extends it at the ledger in the background,
// and suspends the stream only if the hold does not pay for the next token. Sends heartbeats from
// the arrival of the request on. Lives on one loop; operations in flight keep it alive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/runtime/notify.h"
#include "services/inference_router/domain/spending.h"
#include "services/inference_router/run/router_metrics.h"
#include "services/inference_router/settlement/journal.h"

namespace tollgate::inference_router {

// Whether the next token is paid for, and if not, why. Only kNoCredit means that the workspace
// cannot pay (decision 41).
enum class Coverage {
  kPaid,
  kNoCredit,     // the ledger refused: credit or cap is used up
  kHeld,         // running requests held the credit until the patience ended
  kNoAnswer,     // the ledger did not answer until the patience ended
  kClosed,       // the ledger has closed the hold
  kInterrupted,  // the caller left, or the router stops
};

// How long to wait for the extension of a used-up hold.
struct Patience {
  int64_t no_answer_ms = 30'000;
  int64_t held_ms = 10'000;
};

class HoldKeeper : public std::enable_shared_from_this<HoldKeeper> {
 public:
  struct Options {
    std::string request_id;
    std::string workspace_id;
    // Number of the gateway's attempt (MeterOp.attempt).
    int32_t attempt = 0;
    Spending::Options spending;
    // Set for a request that was admitted from a lease. The ledger gets it with the first
    // operation.
    std::optional<billing::v1::Admission> admission;
    std::string trace_id;  // for log lines, in hexadecimal; empty: the request is not traced
    // Deadline of one operation at the ledger.
    int64_t timeout_ms = 2000;
  };
  // slot may be null (a refused request).
  HoldKeeper(Loop& loop, MeteringClient& metering, Clock& clock, JournalSlot* slot,
             RouterMetrics& metrics, Options options);

  Spending& spending() { return spending_; }

  // Creates an operation on this hold, with the next sequence number.
  billing::v1::MeterOp NewOp();
  // Sets the callback for when the ledger has opened the hold of a request admitted from a lease.
  void OnRegistered(std::function<void()> callback) { on_registered_ = std::move(callback); }
  // Returns the amount that the ledger takes out of the lease for a request that ends with this
  // settlement, and writes it to the settlement: everything that was admitted, or only what the
  // request needs if the ledger does not know it yet.
  int64_t EndAdmission(billing::v1::MeterOp& settlement) const;
  // Starts an extension in the background if the hold will be used up soon.
  void ExtendAhead(const common::v1::Usage& usage);
  // Whether the hold pays for this many output tokens. If not, extends it first. While the ledger
  // does not answer, or other requests hold the credit, retries within the patience.
  Task<Coverage> Ensure(int64_t output_tokens, const common::v1::Usage& usage, Patience patience);
  // Reports progress to the ledger in the background.
  void Heartbeat(const common::v1::Usage& usage);

  // Whether the ledger has closed the hold: it expired, or the gateway gave up on this attempt.
  bool closed_by_ledger() const { return closed_by_ledger_; }
  // Whether output tokens were reported to the ledger, which charges them if the hold expires.
  bool reported_output() const { return reported_output_; }
  // Sets the callback for when the ledger turns out to have closed the hold. Called once.
  void OnClosedByLedger(std::function<void()> callback) { on_closed_ = std::move(callback); }
  // Makes the current and all later calls of Ensure return.
  void Interrupt();
  // After this no extension or heartbeat is sent, and the slot is not used.
  void Close() { slot_ = nullptr, closed_ = true, on_closed_ = {}, on_registered_ = {}; }

 private:
  static Task<void> SendExtension(std::shared_ptr<HoldKeeper> self, billing::v1::MeterOp op);
  static Task<void> SendHeartbeat(std::shared_ptr<HoldKeeper> self, billing::v1::MeterOp op);
  void StartExtension(int64_t total_nano_usd, const common::v1::Usage& usage);
  void OnResult(const Result<billing::v1::MeterResult>& result);
  void MarkClosedByLedger();

  Loop& loop_;
  MeteringClient& metering_;
  Clock& clock_;
  JournalSlot* slot_;
  RouterMetrics& metrics_;
  const Options options_;
  Spending spending_;
  Notify answered_;
  std::function<void()> on_closed_;
  std::function<void()> on_registered_;
  // Whether an operation with the admission was sent, and whether one was accepted.
  bool admission_sent_ = false;
  bool registered_ = false;
  int64_t sequence_without_slot_ = 0;
  bool closed_ = false;
  bool closed_by_ledger_ = false;
  bool reported_output_ = false;
  bool interrupted_ = false;
};

}  // namespace tollgate::inference_router
