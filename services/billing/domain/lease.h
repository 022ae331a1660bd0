// Leases: credit of a workspace that a router may spend without asking.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace tollgate::billing {

// Credit of a workspace that one loop of a router may spend without asking. It is reserved in
// wallet and month like a hold (docs/design/ledger.md 13).
struct Lease {
  std::string workspace;
  std::string lessee;  // one loop of one router process
  int32_t month = 0;   // YYYYMM; each month has its own lease
  int64_t granted_nano_usd = 0;
  int64_t used_nano_usd = 0;  // by admitted requests that the ledger knows
  int64_t expires_us = 0;

  int64_t reserved_nano_usd() const { return granted_nano_usd - used_nano_usd; }
};
// Primary key of the row.
struct LeaseName {
  std::string workspace;
  std::string lessee;
  int32_t month = 0;
  auto operator<=>(const LeaseName&) const = default;
};
// Key of the row in a State.
std::string LeaseKey(const LeaseName& name);

// What a lessee may spend.
struct LeaseTerms {
  int32_t month = 0;
  int64_t granted_nano_usd = 0;
  int64_t valid_ms = 0;
  bool recalled = false;  // the lessee must give back the rest
  friend bool operator==(const LeaseTerms&, const LeaseTerms&) = default;
};

}  // namespace tollgate::billing
