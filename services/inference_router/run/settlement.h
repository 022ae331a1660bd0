// The settlement of one request: measures what is charged, settles it or releases the hold, and
// builds the End event. Created after the last engine run.
#pragma once

#include <functional>

#include "services/inference_router/run/engine_run.h"
#include "services/inference_router/run/run_context.h"

namespace tollgate::inference_router {

class Settlement {
 public:
  // run: the last run; null if no engine was asked. Both arguments must outlive the settlement.
  Settlement(RunContext& context, const EngineRun* run, RunOutcome outcome)
      : context_(context), run_(run), outcome_(outcome) {}

  // Whether the request is charged. docs/design/ledger.md 5 says who pays for a failure.
  bool IsCharged() const;
  // Settles what the run produced. Returns when the settlement is durable; End must not be sent
  // before that (decision 24). Requires IsCharged(). failure: the error of a failed run.
  Task<inference::v1::End> Charge(const Error& failure);
  // Releases the hold without a charge.
  Task<void> Release();
  // Ends this router's part and leaves the hold open for the gateway, which tries another model. If
  // nobody takes the hold over, it expires without a charge.
  void LeaveHold();
  // Observes the GenAI metrics; Charge calls it itself. error: the name of its row; empty for a
  // success.
  void Observe(const common::v1::Usage& usage, std::string_view error) const;

 private:
  bool IsEmpty() const;
  // Computes what is charged and counts it in the metrics.
  Measured Measure() const;
  billing::v1::MeterOp BuildSettleOp(const Measured& measured) const;
  inference::v1::End BuildEnd(const Measured& measured, const Settled& settled) const;
  // Returns to the lease what the request does not need; `op` says what it needs. Returns what to
  // call when the ledger has answered `op`.
  std::function<void()> EndTicket(billing::v1::MeterOp& op);
  // Call when no further operation on the hold follows. The caller passes the slot to the settler.
  JournalSlot* CloseHold();

  RunContext& context_;
  const EngineRun* const run_;
  const RunOutcome outcome_;
};

}  // namespace tollgate::inference_router
