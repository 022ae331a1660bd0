// Decides from health probes and outcomes of calls whether a replica is used
// (docs/design/failures.md 3). Pure: time is an argument, in microseconds of a monotonic clock.
#pragma once

#include <cstdint>

namespace tollgate::rpc {

// Result of a health probe.
enum class Liveness {
  kServing,
  kNotServing,   // it answered that it does not serve: it is stopping, or one of its loops hangs
  kUnreachable,  // no connection
  kNoAnswer,     // no answer within the probe's timeout
};

class ReplicaHealth {
 public:
  enum class State {
    kUp,
    kTrial,    // after an ejection: gets one call at a time
    kEjected,  // gets no calls while another replica is available
  };
  enum class Reason { kSilent, kUnreachable, kNotServing, kFailing };

  // A replica that has answered within this time needs no probe.
  static constexpr int64_t kQuietUs = 150'000;
  // A replica that answers neither a probe nor a call for this long hangs.
  static constexpr int64_t kSilentUs = 500'000;
  // Interval at which Tick is called. Lateness of Tick does not count against the replica: this
  // process was stopped or had no processor time.
  static constexpr int64_t kTickUs = 50'000;
  // Consecutive failed calls, although probes are answered, that eject a replica.
  static constexpr int kFailures = 5;
  // Minimum duration of an ejection. Doubles with each earlier ejection, up to the maximum.
  static constexpr int64_t kEjectionUs = 1'000'000;
  static constexpr int64_t kMaxEjectionUs = 30'000'000;
  // Ejections are forgotten after this time without a new one.
  static constexpr int64_t kForgetUs = 30'000'000;
  // A trial succeeds after this many answered calls, or after this time without calls.
  static constexpr int kTrialCalls = 5;
  static constexpr int64_t kTrialUs = 2'000'000;

  explicit ReplicaHealth(int64_t now_us) : tick_us_(now_us) {}

  State state() const { return state_; }
  // Reason of the last ejection.
  Reason reason() const { return reason_; }
  // Ejected, but it answers probes again. Preferred to replicas that do not.
  bool recovering() const { return state_ == State::kEjected && recovering_; }

  bool ProbeIsDue(int64_t now_us) const;
  void ProbeSent(int64_t now_us);
  void ProbeEnded(Liveness found, int64_t now_us);
  // Any answer counts, including a refusal.
  void CallAnswered(int64_t now_us);
  // The replica was unavailable or did not answer in time.
  void CallFailed(int64_t now_us);
  void Tick(int64_t now_us);

 private:
  void Heard(int64_t now_us);
  void Eject(Reason reason, int64_t now_us);
  void BeginTrial(int64_t now_us);

  State state_ = State::kUp;
  Reason reason_ = Reason::kSilent;
  int64_t tick_us_;
  int64_t heard_us_ = 0;       // last answer; 0: never, or a failure asks for a probe
  int64_t unanswered_us_ = 0;  // when the unanswered probe was sent; 0: none
  int64_t ejected_until_us_ = 0;
  int64_t changed_us_ = 0;  // when it entered its state
  bool probing_ = false;
  bool recovering_ = false;
  int failures_ = 0;  // consecutive
  int answers_ = 0;   // during the trial
  int ejections_ = 0;
};

}  // namespace tollgate::rpc
