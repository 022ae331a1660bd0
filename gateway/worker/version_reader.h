// Reads the version of auth's latest change for all callers of a loop together: one call at a time
// with a pause in between, however many callers there are. See ADR 0013. Lives on one loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/runtime/notify.h"

namespace tollgate::gateway {

class VersionReader : public std::enable_shared_from_this<VersionReader> {
 public:
  // Time from the start of one call to the start of the next. A flood of made-up keys costs auth 20
  // reads per second, or four per loop if that is more, and a new key waits at most 250 ms.
  static constexpr int64_t PauseUs(int loops) {
    return std::min<int64_t>(250'000, int64_t{50'000} * loops);
  }

  VersionReader(Loop& loop, const Clock& clock, AuthClient& auth, int64_t pause_us)
      : loop_(loop), clock_(clock), auth_(auth), pause_us_(pause_us) {}

  // Returns the version, read after this call began. Empty when auth did not respond.
  Task<std::optional<int64_t>> Read();
  // Makes no more calls to auth, whose client is about to be destroyed.
  void Stop() { stopped_ = true; }
  int64_t calls() const { return calls_; }

 private:
  struct Call {
    explicit Call(Loop& loop) : done(loop) {}
    Event done;
    std::optional<int64_t> version;
  };
  static Task<void> Run(std::shared_ptr<VersionReader> self);

  Loop& loop_;
  const Clock& clock_;
  AuthClient& auth_;
  const int64_t pause_us_;
  // The next call, not sent yet.
  std::shared_ptr<Call> next_;
  bool running_ = false;
  bool stopped_ = false;
  int64_t last_call_us_ = INT64_MIN / 2;
  int64_t calls_ = 0;
};

}  // namespace tollgate::gateway
