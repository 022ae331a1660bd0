// Leases: credit of a workspace that a router spends without asking.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace tollgate::billing {

// Credit of a workspace that one loop of a router may spend without asking. Reserved in wallet and
// month as by a hold (docs/design/ledger.md 13).
struct Lease {
  std::string workspace;
  std::string lessee;  // one loop of one run of a router
  int32_t month = 0;   // YYYYMM; another month is another lease
  int64_t granted_nano_usd = 0;
  int64_t used_nano_usd = 0;  // by the admitted requests that the ledger knows of
  int64_t expires_us = 0;

  int64_t reserved_nano_usd() const { return granted_nano_usd - used_nano_usd; }
};
// The primary key of its row.
struct LeaseName {
  std::string workspace;
  std::string lessee;
  int32_t month = 0;
  auto operator<=>(const LeaseName&) const = default;
};
// Names its row in a State.
std::string LeaseKey(const LeaseName& name);

// What a lessee may do.
struct LeaseTerms {
  int32_t month = 0;
  int64_t granted_nano_usd = 0;
  int64_t valid_ms = 0;
  bool recalled = false;  // credit is low: the rest is to be given back
  friend bool operator==(const LeaseTerms&, const LeaseTerms&) = default;
};

}  // namespace tollgate::billing
