// How often each peer may do something: a rate with a burst per network address. Thread-safe, of
// bounded size; an IPv6 peer is its /64, since whoever has one address of it has all of them.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tollgate {

class AddressLimiter {
 public:
  struct Options {
    // One turn comes back every interval_us.
    int64_t interval_us = 1'000'000;
    int64_t burst = 1;
    // Addresses remembered. Beyond it some are forgotten, and begin anew.
    size_t max_addresses = 50'000;
  };
  explicit AddressLimiter(Options options) : options_(options) {}

  // Takes a turn if there is one. Returns 0, or the µs until there will be one. Times are
  // monotonic µs.
  int64_t Take(std::string_view address, int64_t now_us);
  // The same without taking it.
  int64_t Wait(std::string_view address, int64_t now_us) const;
  // A turn that was taken does not count after all.
  void GiveBack(std::string_view address);

  size_t size() const;

 private:
  int64_t WaitOf(int64_t full_us, int64_t now_us) const;
  void MakeRoom(int64_t now_us);

  const Options options_;
  mutable std::mutex mutex_;
  // Address → when all of its turns will be back (GCRA).
  std::unordered_map<std::string, int64_t> full_us_;
  int64_t swept_us_ = INT64_MIN / 2;
};

}  // namespace tollgate
