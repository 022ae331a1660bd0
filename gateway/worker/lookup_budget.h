// Limits the lookups at auth that find nothing (H49). A lookup takes a permit and returns it if it
// finds a key, so known customers do not use up the budget. When no permit is left, lookups wait in
// one queue per address (AddressSubject) and the addresses take turns: a busy address delays the
// others by one lookup per turn. Lives on one loop.
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
    // Waiters per address. More are refused.
    size_t max_waiting_per_address = 20;
    // Waiters of all addresses together. Above it each address may still have one waiter, up to
    // twice this number in total, so that a few addresses cannot keep others out.
    size_t max_waiting = 1'000;
    int64_t max_wait_ms = 1'000;
  };
  // The process has 200 permits per second and 800 at once, divided among its loops.
  static Options PerLoop(int loops) {
    Options options;
    options.interval_us *= loops;
    options.burst = options.burst / loops + 1;
    return options;
  }

  LookupBudget(Loop& loop, const Clock& clock, Options options)
      : loop_(loop), clock_(clock), options_(options) {}

  // Takes a permit, waiting for one if necessary. Returns false when too many wait, or after
  // max_wait_ms.
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
  // Grants permits to waiters while there are any, then sets a timer for the next permit.
  void GrantInTurn();

  Loop& loop_;
  const Clock& clock_;
  const Options options_;
  // The time at which all permits will be back (GCRA).
  int64_t full_us_ = 0;
  std::unordered_map<AddressSubject, Queue> queues_;  // never holds an empty queue
  std::list<AddressSubject> turns_;  // the addresses in queues_, in the order of their turns
  size_t waiting_ = 0;
  bool timer_set_ = false;
};

}  // namespace tollgate::gateway
