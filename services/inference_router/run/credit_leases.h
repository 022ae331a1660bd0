// The leases of one loop on the credit of busy workspaces (domain/credit_lease.h). Asks billing for
// them in the background, and admits requests from them even while billing is unreachable. See
// docs/adr/0042 and 0052.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/runtime/loop.h"
#include "services/inference_router/run/router_metrics.h"
#include "services/inference_router/settlement/outbox.h"

namespace tollgate::inference_router {

// The record of a request that was admitted from a lease.
using LeaseTicket = billing::v1::Admission;

class CreditLeases {
 public:
  // admissions: records of the requests that the ledger does not know yet, by OutboxKey.
  CreditLeases(Loop& loop, MeteringClient& metering, const Clock& clock, Outbox& admissions,
               RouterMetrics& metrics);
  ~CreditLeases();

  // Admits the request and returns when its record is on disk. nullopt: no lease covers it.
  Task<std::optional<LeaseTicket>> Admit(billing::v1::AuthorizeItem item);
  // Call when the request is over. kept: the amount that the ledger takes out of the lease for it.
  // Returns what to call on the loop when the ledger has settled or refused the request.
  std::function<void()> Finish(const LeaseTicket& ticket, int64_t kept_nano_usd);

  // Gives the leases on these workspaces back. workspaces: the complete list of recalls; it holds
  // until the next one.
  void OnRecalls(std::span<const std::string> workspaces);
  // Gives all leases back when the process stops, without waiting for answers.
  void GiveBack();
  // Asks the ledger where a question is due. Called every second.
  void Tick();

  // Output tokens of the first slice, as for an authorize (docs/design/ledger.md 4).
  static constexpr int64_t kSliceTokens = 4096;
  // The amount taken out of the lease for a request: its prompt and the first slice of its output.
  static int64_t AmountOf(const billing::v1::AuthorizeItem& item);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  int64_t open_ = 0;  // leases counted in the gauge
};

}  // namespace tollgate::inference_router
