#include "services/inference_router/run/credit_leases.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/base/time_units.h"
#include "common/money/money.h"
#include "common/observability/log.h"
#include "common/runtime/notify.h"
#include "services/inference_router/domain/credit_lease.h"

namespace tollgate::inference_router {
namespace {

// Only busy workspaces have leases. With more workspaces than this, further ones are authorized
// request by request.
constexpr size_t kMaxWorkspaces = 1024;
constexpr int64_t kTimeoutMs = 1'000;
// The ledger refuses ids whose time is a day ahead of its own. It decides on those whose time is
// far from this router's, because a request that it refuses after the answer is never charged.
constexpr int64_t kMaxClockDifferenceUs = 12 * kHourUs;

bool IsFarFrom(std::string_view request_id, int64_t wall_us) {
  const auto id = Id::FromBytes(request_id);
  return !id || std::abs(id->unix_ms() * 1000 - wall_us) > kMaxClockDifferenceUs;
}

// The current lease of a workspace. Earlier leases had other names.
struct Entry {
  CreditLease lease;
  int64_t number = 0;
};

}  // namespace

struct CreditLeases::Shared : std::enable_shared_from_this<Shared> {
  Shared(Loop& loop, MeteringClient& metering, const Clock& clock, Outbox& admissions,
         RouterMetrics& metrics)
      : loop(loop), metering(metering), clock(clock), admissions(admissions), metrics(metrics) {}

  std::string NameOf(int64_t number) const { return lessee + "-" + std::to_string(number); }

  // Replaces a lease that is over by the next one.
  void Follow(Entry& entry, int64_t now_us) {
    if (entry.lease.IsOver(now_us)) entry = {entry.lease.Next(), next_number++};
  }

  // Returns null if too many workspaces have a lease.
  Entry* Find(const std::string& workspace, int64_t now_us) {
    auto found = entries.find(workspace);
    if (found == entries.end()) {
      if (entries.size() >= kMaxWorkspaces) return nullptr;
      found = entries.emplace(workspace, Entry{{}, next_number++}).first;
    }
    Follow(found->second, now_us);
    return &found->second;
  }

  // Returns null if the lease is over.
  CreditLease* LeaseOf(const std::string& workspace, const std::string& name) {
    const auto found = entries.find(workspace);
    if (found == entries.end() || NameOf(found->second.number) != name) return nullptr;
    return &found->second.lease;
  }

  void AskIfTime(const std::string& workspace, Entry& entry) {
    if (stopped) return;
    const auto ask = entry.lease.NextAsk(clock.MonotonicUs());
    if (!ask) return;
    billing::v1::TakeLeaseRequest request;
    request.set_workspace_id(workspace);
    request.set_lessee(NameOf(entry.number));
    request.set_month(ask->month);
    request.set_used_nano_usd(ask->used_nano_usd);
    request.set_wanted_nano_usd(ask->wanted_nano_usd);
    request.set_settled_nano_usd(ask->settled_nano_usd);
    loop.Spawn(Take(shared_from_this(), std::move(request), entry.number));
  }

  static Task<void> Take(std::shared_ptr<Shared> self, billing::v1::TakeLeaseRequest request,
                         int64_t number) {
    const std::string workspace = request.workspace_id();
    const bool gives_back = request.wanted_nano_usd() == 0;
    const auto result = co_await self->metering.TakeLease(std::move(request), kTimeoutMs);
    const auto found = self->entries.find(workspace);
    if (found == self->entries.end() || found->second.number != number) co_return;
    CreditLease& lease = found->second.lease;
    if (!result || result->denied_by() == billing::v1::DENY_REASON_UNAVAILABLE) {
      lease.OnNoAnswer();
      co_return;
    }
    CreditLease::Answer answer;
    answer.denied = result->denied_by() != billing::v1::DENY_REASON_UNSPECIFIED;
    answer.month = result->month();
    answer.granted_nano_usd = result->granted_nano_usd();
    answer.valid_us = result->valid_ms() * 1000;
    answer.recalled = result->recalled();
    if (lease.OnAnswer(answer, self->clock.MonotonicUs()))
      self->metrics.leases_recalled.Increment();
    // A lease that was granted before its recall may arrive after it.
    if (self->recalled.contains(workspace)) self->Recall(lease);
    // A recalled lease is given back at once.
    if (!gives_back) self->AskIfTime(workspace, found->second);
  }

  void Recall(CreditLease& lease) {
    if (lease.Recall(clock.MonotonicUs())) metrics.leases_recalled.Increment();
  }

  Task<bool> WriteDown(const billing::v1::Admission& admission) {
    struct Written {
      explicit Written(Loop& loop) : done(loop) {}
      Event done;
      bool durable = false;
    };
    const auto written = std::make_shared<Written>(loop);
    Loop* const on = &loop;
    admissions.Append(OutboxKey(admission.item().request_id(), admission.item().attempt()),
                      admission.SerializeAsString(), [on, written](bool durable) {
                        on->Post([written, durable] {
                          written->durable = durable;
                          written->done.Set();
                        });
                      });
    co_await written->done.Wait();
    co_return written->durable;
  }

  Loop& loop;
  MeteringClient& metering;
  const Clock& clock;
  Outbox& admissions;
  RouterMetrics& metrics;
  // Unique among all loops of all routers, past ones included.
  const std::string lessee = HexEncode(RandomBytes(12));
  int64_t next_number = 1;
  std::unordered_map<std::string, Entry> entries;
  std::unordered_set<std::string> recalled;  // workspaces in the newest list of recalls
  bool stopped = false;
};

CreditLeases::CreditLeases(Loop& loop, MeteringClient& metering, const Clock& clock,
                           Outbox& admissions, RouterMetrics& metrics)
    : shared_(std::make_shared<Shared>(loop, metering, clock, admissions, metrics)) {}

CreditLeases::~CreditLeases() { shared_->stopped = true; }

int64_t CreditLeases::AmountOf(const billing::v1::AuthorizeItem& item) {
  const Rates rates{std::max<int64_t>(item.price().input_pico_usd(), 0),
                    std::max<int64_t>(item.price().output_pico_usd(), 0)};
  return HoldNanoUsd(CostPicoUsd(rates, std::max<int64_t>(item.prompt_tokens_bound(), 0),
                                 std::clamp<int64_t>(item.output_tokens_bound(), 0, kSliceTokens)));
}

Task<std::optional<LeaseTicket>> CreditLeases::Admit(billing::v1::AuthorizeItem item) {
  const std::shared_ptr<Shared> shared = shared_;
  const int64_t now_us = shared->clock.MonotonicUs();
  Entry* const entry = shared->Find(item.workspace_id(), now_us);
  const int64_t amount = AmountOf(item);
  const bool admitted = entry != nullptr && !IsFarFrom(item.request_id(), shared->clock.WallUs()) &&
                        entry->lease.Admit(amount, now_us);
  if (!admitted) {
    if (entry != nullptr) shared->AskIfTime(item.workspace_id(), *entry);
    shared->metrics.lease_refused.Increment();
    co_return std::nullopt;
  }
  LeaseTicket ticket;
  ticket.set_lessee(shared->NameOf(entry->number));
  ticket.set_month(entry->lease.month());
  ticket.set_authorized_nano_usd(amount);
  *ticket.mutable_item() = std::move(item);
  shared->AskIfTime(ticket.item().workspace_id(), *entry);
  // A crash would lose a request that is not on disk, together with its cost.
  if (!co_await shared->WriteDown(ticket)) {
    (void)Finish(ticket, 0);
    shared->metrics.lease_refused.Increment();
    co_return std::nullopt;
  }
  shared->metrics.lease_admitted.Increment();
  co_return ticket;
}

std::function<void()> CreditLeases::Finish(const LeaseTicket& ticket, int64_t kept_nano_usd) {
  CreditLease* const lease = shared_->LeaseOf(ticket.item().workspace_id(), ticket.lessee());
  if (lease != nullptr) lease->Finish(ticket.authorized_nano_usd(), kept_nano_usd);
  return [shared = shared_, workspace = ticket.item().workspace_id(), lessee = ticket.lessee(),
          kept_nano_usd] {
    CreditLease* const settled = shared->LeaseOf(workspace, lessee);
    if (settled != nullptr) settled->OnSettled(kept_nano_usd);
  };
}

void CreditLeases::GiveBack() {
  for (auto& [workspace, entry] : shared_->entries) {
    entry.lease.GiveBack();
    shared_->AskIfTime(workspace, entry);
  }
}

void CreditLeases::OnRecalls(std::span<const std::string> workspaces) {
  shared_->recalled = {workspaces.begin(), workspaces.end()};
  for (const std::string& workspace : workspaces) {
    const auto found = shared_->entries.find(workspace);
    if (found == shared_->entries.end()) continue;
    shared_->Recall(found->second.lease);
    shared_->AskIfTime(workspace, found->second);
  }
}

void CreditLeases::Tick() {
  const int64_t now_us = shared_->clock.MonotonicUs();
  int64_t open = 0;
  for (auto& [workspace, entry] : shared_->entries) {
    shared_->Follow(entry, now_us);
    shared_->AskIfTime(workspace, entry);
    open += entry.lease.Holds(now_us) ? 1 : 0;
  }
  std::erase_if(shared_->entries,
                [now_us](const auto& one) { return one.second.lease.IsForgotten(now_us); });
  shared_->metrics.leases.Increment(static_cast<double>(open - open_));
  open_ = open;
}

}  // namespace tollgate::inference_router
