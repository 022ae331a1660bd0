// Requests that cost whole cents, for tests.
#pragma once

#include <string>

#include "common/base/id.h"
#include "services/billing/payments/ledger_port.h"
#include "services/billing/payments/provider.h"

namespace tollgate::billing::payments {

// A request that holds this much.
inline Authorize MakeRequest(const std::string& workspace, int64_t nano_usd) {
  Authorize hold;
  hold.request_id = Id::New();
  hold.workspace = workspace;
  hold.key_id = "key";
  hold.model = "model";
  hold.rates.input_pico_usd = kNanoPerCent * 1000;
  hold.price_version = 1;
  hold.prompt_bound = nano_usd / kNanoPerCent;
  return hold;
}

// Runs a request that costs this much. Returns whether the ledger took it.
inline bool SpendOn(LedgerPort& ledger, const std::string& workspace, int64_t nano_usd) {
  const Authorize hold = MakeRequest(workspace, nano_usd);
  if (auto held = ledger.Submit(hold); !held.ok() || !held->ok) return false;
  Settle settle;
  settle.request_id = hold.request_id;
  settle.workspace = workspace;
  settle.sequence = 1;
  settle.usage.prompt = hold.prompt_bound;
  settle.outcome = Outcome::kCompleted;
  settle.engine = "engine";
  auto settled = ledger.Submit(settle);
  return settled.ok() && settled->ok;
}

}  // namespace tollgate::billing::payments
