// How many lookups at auth may find nothing (H49). A lookup takes a permit and gives it back if it
// finds a key, so known customers do not use the budget up. When no permit is left, lookups wait in
// one queue per address (AddressSubject) and the addresses take turns: one that sends much delays
// the others by one lookup per turn. Lives on one loop.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <unordered_map>

#include "common/base/address_subject.h"
#include "common/base/clock.h"
#include "common/runtime/notify.h"

namespace tollgate::gateway {

class LookupBudget : public std::enable_shared_from_this<LookupBudget> {
 public:
  struct Options {
    // One permit is added every interval_us, up to `burst` permits.
    int64_t interval_us = 5'000;
    int64_t burst = 800;
    // Per address. Further ones are refused.
    size_t max_waiting_per_address = 20;
    // Of all addresses. Beyond it one more per address may wait, up to twice as many in all, so
    // that a few addresses cannot keep others out.
    size_t max_waiting = 1'000;
    int64_t max_wait_ms = 1'000;
  };
  // The process has 200 permits a second and 800 at once, divided among its loops.
  static Options PerLoop(int loops) {
    Options options;
    options.interval_us *= loops;
    options.burst = options.burst / loops + 1;
    return options;
  }

  LookupBudget(Loop& loop, const Clock& clock, Options options)
      : loop_(loop), clock_(clock), options_(options) {}

  // Takes a permit, if need be after waiting for it. False: too many are waiting, or for too long.
  Task<bool> Take(AddressSubject subject);
  // Returns a permit that was taken.
  void GiveBack();

  size_t waiting() const { return waiting_; }

 private:
  struct Waiter {
    explicit Waiter(Loop& loop) : done(loop) {}
    Event done;
    bool granted = false;
    bool gone = false;  // no longer waits
  };
  using Queue = std::deque<std::shared_ptr<Waiter>>;

  bool TryTake();
  bool MayWait(const AddressSubject& subject) const;
  // Grants permits to those that wait, while there are any; then sets a timer for the next permit.
  void GrantInTurn();

  Loop& loop_;
  const Clock& clock_;
  const Options options_;
  // When all permits are back (GCRA).
  int64_t full_us_ = 0;
  std::unordered_map<AddressSubject, Queue> queues_;  // none is empty
  std::list<AddressSubject> turns_;                   // of queues_
  size_t waiting_ = 0;
  bool timer_set_ = false;
};

}  // namespace tollgate::gateway
