// The tries of one request at the inference routers: decides when it is sent again, to another
// router, with a hold, or to another model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/error/error.h"
#include "common/runtime/task.h"
#include "gateway/pipeline/request_context.h"

namespace tollgate::gateway {

// State of the generation received so far.
struct Progress {
  bool started = false;
  bool any_delta = false;
  int64_t deltas = 0;
  bool ended = false;
  bool released = false;
  inference::v1::End end;
  // Why the generation failed.
  std::optional<Error> error;

  bool over() const { return ended || error; }
  // The router left the hold open for this gateway, so another model may be tried.
  bool hold_kept() const { return error && end.hold_kept() && !started && !any_delta; }
  // The router has released the hold, or will release it.
  bool released_by_router() const {
    return ended && end.has_error() && !end.has_usage() && !end.hold_kept();
  }
  // No part of an answer has arrived. A caller that leaves now may have left before an engine took
  // the request.
  bool nothing_came() const { return !started && !any_delta && !over(); }
};

class Tries {
 public:
  using Events = std::vector<inference::v1::Event>;
  enum class Step : uint8_t {
    kRelay,   // forward the events
    kRetry,   // the try failed: ask Retry
    kAgain,   // the request was sent again; discard what was received so far
    kFailed,  // progress.error is set
    kLeft,    // the caller has left
  };

  // Starts with the generation that was dispatched. Until it is destroyed, a disconnect of the
  // caller and the end of a drain cancel the running generation.
  explicit Tries(RequestContext& context);
  ~Tries() { *watched_ = nullptr; }
  Tries(const Tries&) = delete;
  Tries& operator=(const Tries&) = delete;

  // Judges what the current try delivered: kRelay, kRetry or kLeft. No coroutine, because it runs
  // for each batch of tokens.
  Step Judge(const Result<Events>& received) const;
  // Sends the request again after kRetry if another try may succeed. Otherwise kRelay, kFailed or
  // kLeft.
  Task<Step> Retry(const Result<Events>& received);
  // Frees the kept copy of the request if it cannot be sent again. Call it after kRelay and kFailed
  // with `progress` updated.
  void ForgetUnlessNeeded();
  // Sends the request to the next model after progress.error, with the hold that was kept. Returns
  // false if no model is left or the caller has left.
  Task<bool> RetryWithNextModel();

  Progress progress;  // of the current try

 private:
  Step SendNext();
  Task<Step> RetryWithHold();
  // Takes the hold from the lost router for the next attempt (decision 52): from then on, billing
  // refuses that router's reports. If it had settled an answer that is not streamed, the charge is
  // refunded and the request gets a new id and hold. Returns false if the request cannot be moved
  // and must be refused. Moves a request at most once.
  Task<bool> MoveHold();

  RequestContext& context_;
  // The disconnect callback can run after the end of this object.
  const std::shared_ptr<RequestContext*> watched_;
  int declined_ = 0;  // stopping routers that refused the request
};

}  // namespace tollgate::gateway
