// A rate limit with a burst per client address. Thread-safe and of bounded size. IPv6 addresses are
// limited per /64 network, since a client usually controls all addresses of one.
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
    // One permit is added every interval_us, up to `burst` permits.
    int64_t interval_us = 1'000'000;
    int64_t burst = 1;
    // Most addresses to keep. Beyond it some are evicted and start again with a full burst.
    size_t max_addresses = 50'000;
  };
  explicit AddressLimiter(Options options) : options_(options) {}

  // Takes a permit and returns 0, or returns the µs until the next permit. Times are monotonic µs.
  int64_t Take(std::string_view address, int64_t now_us);
  // The same without taking a permit.
  int64_t WaitUs(std::string_view address, int64_t now_us) const;
  // Returns a permit that was taken.
  void Refund(std::string_view address);

  size_t size() const;

 private:
  int64_t WaitUntilPermitUs(int64_t full_us, int64_t now_us) const;
  void EvictIfFull(int64_t now_us);

  const Options options_;
  mutable std::mutex mutex_;
  // Address → the time at which all of its permits are back (GCRA).
  std::unordered_map<std::string, int64_t> full_us_;
  int64_t swept_us_ = INT64_MIN / 2;
};

}  // namespace tollgate
