// The leases of one loop on the credit of busy workspaces (domain/credit_lease.h): asks billing for
// them in the background, and admits requests from them while billing cannot be asked.
// See docs/adr/0042.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/clients/clients.h"
#include "common/runtime/loop.h"
#include "services/inference_router/session/router_metrics.h"
#include "services/inference_router/settlement/outbox.h"

namespace tollgate::inference_router {

// A request that was admitted from a lease.
using LeaseTicket = billing::v1::Admission;

class CreditLeases {
 public:
  // admissions: records of the requests that the ledger does not know yet, by OutboxKey.
  CreditLeases(Loop& loop, MeteringClient& metering, const Clock& clock, Outbox& admissions,
               RouterMetrics& metrics);
  ~CreditLeases();

  // Admits the request, and returns when the record of it is on disk. nullopt: no lease covers it.
  Task<std::optional<LeaseTicket>> Admit(billing::v1::AuthorizeItem item);
  // The request is over. kept: what the ledger takes out of the lease for it.
  void Finish(const LeaseTicket& ticket, int64_t kept_nano_usd);

  // The process stops: gives all leases back, without waiting for answers.
  void GiveBack();
  // Asks the ledger where it is time. Called every second.
  void Tick();

  // Output tokens of the first slice, as of an authorize (docs/design/ledger.md 4).
  static constexpr int64_t kSliceTokens = 4096;
  // What is taken out of the lease for a request: its prompt and the first slice of its output.
  static int64_t AmountOf(const billing::v1::AuthorizeItem& item);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  int64_t open_ = 0;  // as the gauge has it
};

}  // namespace tollgate::inference_router
