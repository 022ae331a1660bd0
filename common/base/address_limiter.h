// A rate limit with a burst per client address (AddressSubject: IPv6 addresses per /64 network).
// Thread-safe and of fixed size, whatever the number of addresses.
//
// It is a count-min sketch: each address has one cell in each of four rows, chosen by hashes with a
// random seed, and its count is the lowest of its cells. So a limited address is never forgotten,
// however many others there are. The price: an address is limited too while each of its four cells
// is shared with a limited address. With 1,000 limited addresses that happens to one address in 19
// million, with 10,000 to one in 2,500.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "common/base/address_subject.h"

namespace tollgate {

class AddressLimiter {
 public:
  struct Options {
    // One permit is added every interval_us, up to `burst` permits.
    int64_t interval_us = 1'000'000;
    int64_t burst = 1;
    // Cells per row, of 8 bytes. The default makes 2 MiB.
    size_t cells = 65'536;
  };
  explicit AddressLimiter(Options options);

  // Takes a permit and returns 0, or returns the µs until the next permit. Times are monotonic µs.
  int64_t Take(std::string_view address, int64_t now_us);
  // As Take, but takes no permit.
  int64_t WaitUs(std::string_view address, int64_t now_us) const;
  // Returns a permit that was taken.
  void Refund(std::string_view address);

 private:
  static constexpr size_t kRows = 4;
  // The address's cell in each row, as indices into full_us_.
  using Cells = std::array<size_t, kRows>;
  Cells CellsOf(std::string_view address) const;
  // The time at which all permits are back (GCRA).
  int64_t FullUs(const Cells& cells) const;
  int64_t WaitUntilPermitUs(int64_t full_us, int64_t now_us) const;

  const Options options_;
  std::array<uint64_t, kRows> seeds_;
  mutable std::mutex mutex_;
  std::vector<int64_t> full_us_;
};

}  // namespace tollgate
