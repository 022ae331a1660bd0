// One run of a request on one engine: sends the request, counts what the engine generates, forwards
// events as far as the hold pays for them, and keeps the journal slot up to date. Lives on one
// loop.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "services/inference_router/domain/output_limit.h"
#include "services/inference_router/domain/token_meter.h"
#include "services/inference_router/engine/engine_attempt.h"
#include "services/inference_router/engine/engine_request.h"
#include "services/inference_router/run/run_context.h"

namespace tollgate::inference_router {

enum class RunOutcome {
  kCompleted,
  // The hold was used up and not extended:
  kCutByCredit,    // the ledger answered that credit or cap is used up
  kCutByHeld,      // other requests held the credit
  kCutByNoAnswer,  // the ledger did not answer
  kClientGone,     // the client disconnected or cancelled
  kFailed,
};

// Whether the answer ends early but regularly, with `length` (decision 4).
inline bool IsCut(RunOutcome outcome) {
  return outcome == RunOutcome::kCutByCredit || outcome == RunOutcome::kCutByHeld ||
         outcome == RunOutcome::kCutByNoAnswer;
}

class EngineRun {
 public:
  // The context must have a route. The arguments must outlive the run. work: meters this engine.
  EngineRun(RunContext& context, EngineState& engine, WorkMeter& work);

  // Call once. After kFailed, see failure().
  Task<RunOutcome> Run();
  // Closes the connection to the engine, if one is open; Run returns soon after.
  void Abort();
  // Called once, when the engine's answer begins, before any of it is counted or sent.
  void OnAnswer(std::function<void()> callback) { on_answer_ = std::move(callback); }
  // Call when another engine's answer is used: Run fails soon after, and nothing of this run is
  // charged.
  void GiveUp();
  bool given_up() const { return given_up_; }
  // Ends a run on an engine that has become unreachable, or has not answered in the time that its
  // pace explains. An engine that does not stream is silent until its answer. Called with every
  // heartbeat.
  void EndIfEngineIsLost();
  // Ends an answer that was cut: sends the finish reason `length` for every choice that has none
  // (decision 4).
  Task<void> CloseChoices();

  const std::string& engine_id() const { return engine_.id(); }
  const EngineState& engine() const { return engine_; }
  // Whether the engine was asked to stream, so that its first output marks the beginning.
  bool streams() const { return answer_ == EngineAnswer::kStreamed; }
  const EngineFailure& failure() const { return failure_; }
  // Whether the engine accepted the request. False again after a failure before any output, which
  // is not charged. An engine that answers as a whole accepts the request by reading all of it.
  bool accepted() const { return accepted_; }
  // Whether Started has been sent to the client.
  bool started() const { return started_; }
  // Whether a part of the answer was sent towards the caller, who may have it.
  bool delivered() const { return delivered_; }
  // Microseconds from the request's arrival to the first output; 0: none yet.
  int64_t first_output_us() const { return first_output_us_; }
  const TokenMeter& meter() const { return meter_; }
  // The counts to report to the ledger while the request runs.
  common::v1::Usage UsageNow() const;

 private:
  EngineAnswer AnswerToAsk() const;
  int64_t MostTokens() const;
  // Whether the engine should have answered as a whole by now. Requests that wait at the engine
  // have the longest time.
  bool IsLate(int64_t now_us) const;
  // Ends the run with this failure.
  void FailWith(EngineFailure failure);
  http::ClientRequest BuildCall() const;
  std::string EngineRequestId() const;
  Task<RunOutcome> Relay(EngineAttempt& attempt);
  void CountBatch();
  // Counts the events [begin, end) of a chunk and ends choices at their limit.
  void CountEvents(size_t begin, size_t end);
  // Whether the prompt does not fit by the engine's own count and the caller has no part of the
  // answer. Engines that silently cut such prompts must not answer them (decision 44).
  bool IsAboveWindow() const;
  EngineFailure AboveWindow() const;
  Task<RunOutcome> ForwardBatch();
  // Ends an answer whose next token is not paid for.
  Task<RunOutcome> Cut(Coverage coverage);
  Task<bool> SendStarted();
  void NoteFailure();
  // Call when the whole answer was forwarded.
  void NoteAnswer();
  // Saves the counts that are charged after a crash of the router.
  void SaveUsage(int64_t completion_tokens);

  RunContext& context_;
  EngineState& engine_;
  WorkMeter& work_;
  std::function<void()> on_answer_;
  bool given_up_ = false;
  const EngineAnswer answer_;
  TokenMeter meter_;
  std::optional<EngineFailure> own_failure_;  // why this run has ended the attempt
  EngineAttempt* attempt_ = nullptr;          // set while one is open
  EngineFailure failure_;

  OutputLimit limit_;
  EngineBatch batch_;
  // For each event of the batch, the completion tokens that must be paid for before it is sent.
  std::vector<int64_t> tokens_due_;
  std::vector<bool> closed_choices_;
  bool accepted_ = false;
  bool started_ = false;
  bool delivered_ = false;
  int64_t begun_us_ = 0;  // monotonic
  int64_t first_output_us_ = 0;
  int64_t saved_reasoning_ = 0;  // tokens saved in the journal
};

}  // namespace tollgate::inference_router
