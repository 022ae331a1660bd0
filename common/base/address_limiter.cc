#include "common/base/address_limiter.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace tollgate {

namespace {

// The least time between two scans of all addresses for full ones, which need no entry.
constexpr int64_t kSweepUs = 1'000'000;

std::string KeyOf(std::string_view address) {
  const std::string text(address.substr(0, address.find('%')));  // without the zone
  in6_addr bytes{};
  if (text.find(':') == std::string::npos || inet_pton(AF_INET6, text.c_str(), &bytes) != 1) {
    return text;
  }
  if (IN6_IS_ADDR_V4MAPPED(&bytes)) {
    char plain[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, bytes.s6_addr + 12, plain, sizeof(plain));
    return plain;
  }
  return std::string(reinterpret_cast<const char*>(bytes.s6_addr), 8);
}

}  // namespace

int64_t AddressLimiter::WaitUntilPermitUs(int64_t full_us, int64_t now_us) const {
  const int64_t next_us = std::max(full_us, now_us) + options_.interval_us;
  return std::max<int64_t>(0, next_us - now_us - options_.interval_us * options_.burst);
}

void AddressLimiter::EvictIfFull(int64_t now_us) {
  if (full_us_.size() < options_.max_addresses) return;
  if (now_us - swept_us_ >= kSweepUs) {
    swept_us_ = now_us;
    std::erase_if(full_us_, [now_us](const auto& entry) { return entry.second <= now_us; });
  }
  if (full_us_.size() >= options_.max_addresses) full_us_.erase(full_us_.begin());
}

int64_t AddressLimiter::Take(std::string_view address, int64_t now_us) {
  const std::string name = KeyOf(address);
  std::lock_guard lock(mutex_);
  auto found = full_us_.find(name);
  if (found == full_us_.end()) {
    EvictIfFull(now_us);
    found = full_us_.emplace(name, now_us).first;
  }
  const int64_t wait_us = WaitUntilPermitUs(found->second, now_us);
  if (wait_us == 0) found->second = std::max(found->second, now_us) + options_.interval_us;
  return wait_us;
}

int64_t AddressLimiter::WaitUs(std::string_view address, int64_t now_us) const {
  const std::string name = KeyOf(address);
  std::lock_guard lock(mutex_);
  const auto found = full_us_.find(name);
  return found == full_us_.end() ? 0 : WaitUntilPermitUs(found->second, now_us);
}

void AddressLimiter::Refund(std::string_view address) {
  const std::string name = KeyOf(address);
  std::lock_guard lock(mutex_);
  const auto found = full_us_.find(name);
  if (found != full_us_.end()) found->second -= options_.interval_us;
}

size_t AddressLimiter::size() const {
  std::lock_guard lock(mutex_);
  return full_us_.size();
}

}  // namespace tollgate
