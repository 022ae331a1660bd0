// What ends in a running ledger without a caller: holds, leases, and leases that are recalled.
#include <algorithm>
#include <future>

#include "common/observability/log.h"
#include "services/billing/commit/ledger_service.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/leases.h"

namespace tollgate::billing {
namespace {

constexpr int kExpiryBatch = 256;

}  // namespace

void LedgerService::ExpireHolds() {
  // After a start or an outage nothing expires for one hold TTL: running requests can send a
  // heartbeat first, so that an outage does not end live streams (docs/design/ledger.md 6). This
  // process may have had no traffic to notice the outage by.
  if (!HasServedFor(options_.policy.hold_ttl_us)) return;
  if (auto open = CountOpenHolds(*database_); open.ok()) metrics_.SetOpenHolds(*open);
  // Reads page by page: holds that cannot be closed must not keep later ones open.
  int64_t closed = 0;
  ExpiredHold last;
  while (true) {
    NextStep(Asks::kAllNodes);
    auto expired = ReadExpiredHolds(*database_, group_commit_->NowUs(), kExpiryBatch, last);
    if (!expired.ok() || expired->empty()) break;
    const bool is_last = expired->size() < kExpiryBatch;
    last = expired->back();
    std::vector<Operation> operations;
    operations.reserve(expired->size());
    for (ExpiredHold& hold : *expired) {
      operations.push_back(billing::Expire{hold.id, std::move(hold.workspace)});
    }
    closed += Expire(std::move(operations));
    if (is_last || !group_commit_->available()) break;
  }
  if (closed > 0) log::Warn("holds expired without a settle", {{"count", closed}});
}

bool LedgerService::HasServedFor(int64_t us) const {
  if (!group_commit_->available()) return false;
  const int64_t since_us = std::max(group_commit_->available_since_us(), interrupted_us_);
  return clock_.MonotonicUs() - since_us >= us;
}

void LedgerService::ExpireLeases() {
  NextStep(Asks::kAllNodes);
  auto leases = ReadLeases(*database_);
  if (!leases.ok()) return;
  int64_t reserved_nano_usd = 0;
  std::vector<Operation> operations;
  const int64_t now_us = group_commit_->NowUs();
  // As with holds, routers first need time to renew the leases and to report what they admitted.
  const bool may_expire = HasServedFor(options_.policy.lease_ttl_us);
  for (Lease& lease : *leases) {
    reserved_nano_usd += lease.reserved_nano_usd();
    if (!may_expire || lease.expires_us > now_us || operations.size() == kExpiryBatch) continue;
    operations.push_back(
        ExpireLease{std::move(lease.workspace), std::move(lease.lessee), lease.month});
  }
  metrics_.SetLeases(static_cast<int64_t>(leases->size()), reserved_nano_usd);
  if (!operations.empty()) Expire(std::move(operations));
}

void LedgerService::FindRecalls() {
  if (!open_ || !AllNodesAnswer()) return;
  const sql::CancelScope scope([this] { return stopping_ || !AllNodesAnswer(); });
  auto recalled = ReadRecalledWorkspaces(*database_);
  if (recalled.ok()) on_recalls_(std::move(*recalled));
}

int64_t LedgerService::Expire(std::vector<Operation> operations) {
  std::promise<int64_t> closed;
  group_commit_->Submit(std::move(operations), [&closed](Result<std::vector<Reply>> replies) {
    int64_t count = 0;
    if (replies.ok()) {
      count = std::count_if(replies->begin(), replies->end(),
                            [](const Reply& reply) { return reply.ok; });
    }
    closed.set_value(count);
  });
  return closed.get_future().get();
}

}  // namespace tollgate::billing
