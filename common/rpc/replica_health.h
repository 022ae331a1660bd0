// Whether a replica of a service is to be used, judged from health probes and from the outcomes of
// calls (docs/design/failures.md 3). Pure: time is an argument, in microseconds of a monotonic
// clock.
#pragma once

#include <cstdint>

namespace tollgate::rpc {

// What a health probe found.
enum class Liveness {
  kServing,
  kNotServing,   // it answered that it does not serve: it is stopping, or one of its loops hangs
  kUnreachable,  // no connection
  kNoAnswer,     // nothing within the probe's time
};

class ReplicaHealth {
 public:
  enum class State {
    kUp,
    kTrial,    // back from an ejection: gets one call at a time
    kEjected,  // gets no calls while another replica is there
  };
  enum class Reason { kSilent, kUnreachable, kNotServing, kFailing };

  // A replica that answered within this time needs no probe.
  static constexpr int64_t kQuietUs = 150'000;
  // A replica that answers neither a probe nor a call for this long hangs.
  static constexpr int64_t kSilentUs = 500'000;
  // How often Tick is to be called. Time by which it comes later is not held against the replica:
  // this process was stopped, or had no processor.
  static constexpr int64_t kTickUs = 50'000;
  // Calls in a row that failed although probes are answered.
  static constexpr int kFailures = 5;
  // An ejection lasts this long at least, twice as long for each one before, up to the maximum.
  static constexpr int64_t kEjectionUs = 1'000'000;
  static constexpr int64_t kMaxEjectionUs = 30'000'000;
  // Earlier ejections are forgotten after this long without one.
  static constexpr int64_t kForgetUs = 30'000'000;
  // A trial ends well with this many answered calls, or after this long when there are none.
  static constexpr int kTrialCalls = 5;
  static constexpr int64_t kTrialUs = 2'000'000;

  explicit ReplicaHealth(int64_t now_us) : tick_us_(now_us) {}

  State state() const { return state_; }
  // Of the last ejection.
  Reason reason() const { return reason_; }
  // Ejected, but it answers probes again: to be used before others that do not.
  bool recovering() const { return state_ == State::kEjected && recovering_; }

  bool ProbeIsDue(int64_t now_us) const;
  void ProbeSent(int64_t now_us);
  void ProbeEnded(Liveness found, int64_t now_us);
  // Any answer, a refusal too.
  void CallAnswered(int64_t now_us);
  // It was unavailable, or did not answer in time.
  void CallFailed(int64_t now_us);
  void Tick(int64_t now_us);

 private:
  void Heard(int64_t now_us);
  void Eject(Reason reason, int64_t now_us);
  void BeginTrial(int64_t now_us);

  State state_ = State::kUp;
  Reason reason_ = Reason::kSilent;
  int64_t tick_us_;
  int64_t heard_us_ = 0;       // 0: never, or a failure asks for a probe
  int64_t unanswered_us_ = 0;  // since when a probe waits for an answer; 0: none does
  int64_t ejected_until_us_ = 0;
  int64_t changed_us_ = 0;  // since when it is in its state
  bool probing_ = false;
  bool recovering_ = false;
  int failures_ = 0;  // in a row
  int answers_ = 0;   // of the trial
  int ejections_ = 0;
};

}  // namespace tollgate::rpc
