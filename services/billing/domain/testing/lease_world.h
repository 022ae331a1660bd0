// Leases for tests: a ledger and short constructors of one lessee's operations.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "services/billing/domain/testing/ledger_world.h"

namespace tollgate::billing {

// Admission of a request that its router charges at these amounts.
inline std::shared_ptr<const Admission> MakeAdmission(Id id, int64_t prompt, int64_t nano_usd,
                                                      int32_t month, std::string lessee = "loop") {
  return std::make_shared<const Admission>(
      Admission{MakeAuthorize(id, prompt, 100), std::move(lessee), month, nano_usd});
}

class LeaseTest : public LedgerTest {
 protected:
  int32_t Month() const { return UtcMonth(world.now_us); }
  Reply Take(int64_t used, int64_t wanted, const std::string& lessee = "loop") {
    return world.Do(TakeLease{"ws", lessee, Month(), used, wanted});
  }
  const Lease* Find(const std::string& lessee = "loop", int32_t month = 0) {
    const auto found = world.state.leases.find(LeaseKey({"ws", lessee, month ? month : Month()}));
    return found == world.state.leases.end() ? nullptr : &found->second;
  }
  // Settle of a request that was admitted with this amount.
  Settle Admitted(Id id, int64_t nano_usd, int64_t prompt, int32_t month = 0) {
    Settle op = MakeSettle(id, prompt, 0);
    op.admission = MakeAdmission(id, prompt, nano_usd, month ? month : Month());
    return op;
  }
};

}  // namespace tollgate::billing
