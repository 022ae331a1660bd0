#include "common/base/address_limiter.h"

#include <algorithm>
#include <cstring>

#include "common/base/crypto.h"

namespace tollgate {

AddressLimiter::AddressLimiter(Options options)
    : options_(options), full_us_(kRows * options.cells) {
  const std::string random = RandomBytes(sizeof(seeds_));
  std::memcpy(seeds_.data(), random.data(), sizeof(seeds_));
}

AddressLimiter::Cells AddressLimiter::CellsOf(std::string_view address) const {
  const AddressSubject subject = AddressSubject::FromText(address);
  Cells cells;
  for (size_t row = 0; row < kRows; ++row) {
    cells[row] = row * options_.cells + subject.Hash(seeds_[row]) % options_.cells;
  }
  return cells;
}

int64_t AddressLimiter::FullUs(const Cells& cells) const {
  int64_t full_us = full_us_[cells[0]];
  for (const size_t cell : cells) full_us = std::min(full_us, full_us_[cell]);
  return full_us;
}

int64_t AddressLimiter::WaitUntilPermitUs(int64_t full_us, int64_t now_us) const {
  const int64_t next_us = std::max(full_us, now_us) + options_.interval_us;
  return std::max<int64_t>(0, next_us - now_us - options_.interval_us * options_.burst);
}

int64_t AddressLimiter::Take(std::string_view address, int64_t now_us) {
  const Cells cells = CellsOf(address);
  std::lock_guard lock(mutex_);
  const int64_t before_us = FullUs(cells);
  const int64_t wait_us = WaitUntilPermitUs(before_us, now_us);
  if (wait_us > 0) return wait_us;
  // Raises a cell only as far as this address needs. A higher cell also belongs to another address.
  const int64_t after_us = std::max(before_us, now_us) + options_.interval_us;
  for (const size_t cell : cells) full_us_[cell] = std::max(full_us_[cell], after_us);
  return 0;
}

int64_t AddressLimiter::WaitUs(std::string_view address, int64_t now_us) const {
  const Cells cells = CellsOf(address);
  std::lock_guard lock(mutex_);
  return WaitUntilPermitUs(FullUs(cells), now_us);
}

void AddressLimiter::Refund(std::string_view address) {
  const Cells cells = CellsOf(address);
  std::lock_guard lock(mutex_);
  // The permit was counted in the lowest cells; higher cells are due to other addresses.
  const int64_t full_us = FullUs(cells);
  for (const size_t cell : cells) {
    if (full_us_[cell] == full_us) full_us_[cell] -= options_.interval_us;
  }
}

}  // namespace tollgate
