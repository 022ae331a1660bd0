#include "services/billing/verify/verify_leases.h"

#include <map>
#include <string>

#include "common/base/try.h"
#include "services/billing/storage/leases.h"

namespace tollgate::billing {

sql::SqlResult<void> CheckLeases(sql::Connection& db, const WorkspaceState& state,
                                 const Wallet& wallet, Findings& findings) {
  TRY(auto rows, ReadLeases(db, state.workspace));
  std::map<std::string, int64_t> reserved = state.leases;
  for (const Lease& lease : rows) {
    const std::string key = LesseeKey(lease.lessee, lease.month);
    const auto by_entries = reserved.find(key);
    findings.Expect(lease.granted_nano_usd - lease.used_nano_usd,
                    by_entries == reserved.end() ? 0 : by_entries->second,
                    "what the lease " + key + " reserves");
    if (by_entries != reserved.end()) reserved.erase(by_entries);
  }
  for (const auto& [key, amount] : reserved) {
    findings.Report("no lease for the entries of " + key);
  }
  int64_t sum = 0;
  for (const auto& [key, amount] : state.leases) sum += amount;
  findings.Expect(wallet.leased_nano_usd, sum, "what leases reserve");
  findings.Expect(wallet.leases, static_cast<int64_t>(state.leases.size()), "the number of leases");
  return {};
}

}  // namespace tollgate::billing
