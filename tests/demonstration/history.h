// Makes the workspace of a demonstration with a month of history, through the admin calls of auth
// and the operations of the ledger.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/result.h"
#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::demonstration {

struct HistoryOptions {
  std::string auth_url;  // sqlite:/path or postgresql://…
  std::string pepper;    // of auth
  std::string brand = "tollgate";
  std::string billing_url;
  catalog::v1::Snapshot catalog;  // with at least one model; its prices are charged
  uint64_t seed = 1;
  int days = 30;       // full days before the day of now_us
  int64_t now_us = 0;  // where the history ends
};

struct HistoryMade {
  int64_t requests = 0;
  int64_t charged_nano_usd = 0;
};

inline constexpr char kDemonstrationWorkspace[] = "demo";

// Returns a one-line error. Changes nothing, and says so, when one of the stores already has a
// workspace, a wallet or an entry. After another failure the stores must be discarded.
BasicResult<HistoryMade, std::string> MakeHistory(const HistoryOptions& options);

}  // namespace tollgate::demonstration
