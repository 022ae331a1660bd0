#include "tests/simulation/cluster_simulation.h"

#include <algorithm>
#include <utility>

#include "common/base/ledger_shard.h"
#include "common/money/money.h"
#include "services/billing/domain/chain.h"

namespace tollgate::simulation {
namespace {

using billing::Outcome;

// Duration of the faults, and time after them for deliveries and expiry.
constexpr int64_t kFaultsUs = 60 * kSecond, kEndUs = 400 * kSecond;
// Virtual time begins 20 s before the end of a month.
constexpr int64_t kEpochUs = 1'764'547'180 * kSecond;

}  // namespace

ClusterCounts& ClusterCounts::operator+=(const ClusterCounts& other) {
  requests += other.requests, complete += other.complete, refused += other.refused;
  failed += other.failed, left += other.left, unknown += other.unknown, moved += other.moved;
  expired += other.expired, overrun += other.overrun, top_ups += other.top_ups;
  operations += other.operations, commits += other.commits, crashes += other.crashes;
  failovers += other.failovers, cuts += other.cuts, slow_disks += other.slow_disks;
  lost_commits += other.lost_commits, admitted += other.admitted, no_lease += other.no_lease;
  recalled += other.recalled, lease_overrun += other.lease_overrun;
  return *this;
}

ClusterSimulation::ClusterSimulation(uint64_t seed) : events_(seed) {
  policy_.hold_ttl_us = 20 * kSecond;
  policy_.slice_tokens = kSliceTokens;
  for (int i = 0; i < kWorkspaces; ++i) workspaces_.push_back("ws-" + std::to_string(i));
}

int64_t ClusterSimulation::ClockUs() const { return kEpochUs + events_.now_us(); }

int64_t ClusterSimulation::Cost(const Rates& rates, int64_t prompt, int64_t completion) {
  return ChargeNanoUsd(CostPicoUsd(rates, prompt, completion));
}

void ClusterSimulation::Broken(std::string what) {
  if (why_.empty()) why_ = std::move(what) + " at " + std::to_string(events_.now_us()) + " µs";
}

bool ClusterSimulation::Run() {
  for (int i = 0; i < kGateways; ++i) {
    events_.After(events_.Below(kSecond), [this, i] { Ask(i); });
  }
  for (int i = 0; i < kNodes; ++i) {
    events_.After(events_.Below(kSecond), [this, i] { Expire(nodes_[static_cast<size_t>(i)]); });
  }
  for (int i = 0; i < kRouters; ++i) {
    events_.After(events_.Below(kSecond), [this, i] { RenewLeases(i); });
  }
  // Enough credit for some, too little for others, so that holds, slices and refusals meet.
  for (const std::string& workspace : workspaces_) {
    billing::AddCredit op;
    op.workspace = workspace;
    op.command_id = "first";
    op.amount_nano_usd = events_.Between(100'000, 8'000'000);
    if (HasLeases(workspace)) op.amount_nano_usd *= 200;
    op.actor = "tester";
    TopUp(static_cast<int>(events_.Below(kGateways)), std::move(op));
  }
  events_.After(events_.Below(kSecond), [this] { PlanFault(); });
  events_.RunUntil(kEndUs);
  return why_.empty() && CheckBooks();
}

// --- network and ledger

ClusterSimulation::Node& ClusterSimulation::NodeOf(const std::string& workspace) {
  return nodes_[static_cast<size_t>(LedgerShard(workspace) % kNodes)];
}

bool ClusterSimulation::Cut(int kind, int index, int other_kind, int other) const {
  const auto found = cuts_.find({kind, index, other_kind, other});
  return found != cuts_.end() && events_.now_us() < found->second;
}

void ClusterSimulation::Call(int kind, int index, Operation operation, int64_t timeout_us,
                             Done done) {
  const auto life_of = [this, kind, index] {
    const Process& process = kind == kGatewayKind
                                 ? gateways_[static_cast<size_t>(index)]
                                 : static_cast<Process&>(routers_[static_cast<size_t>(index)]);
    return process.up ? process.life : -1;
  };
  const int64_t life = life_of();
  auto answered = std::make_shared<bool>(false);
  auto finish = [answered, life, life_of,
                 done = std::move(done)](std::optional<billing::Reply> reply) {
    if (std::exchange(*answered, true) || life < 0 || life_of() != life) return;
    done(std::move(reply));
  };
  events_.After(timeout_us, [finish] { finish(std::nullopt); });
  const int to = LedgerShard(billing::WorkspaceOf(operation)) % kNodes;
  // Now and then a message arrives twice, as when a client repeats a slow call.
  for (int copies = events_.OneIn(50) ? 2 : 1; copies > 0; --copies) {
    if (Cut(kind, index, kNodeKind, to)) return;
    events_.After(events_.Between(100, 3 * kMs), [this, kind, index, to, operation, finish] {
      Node& node = nodes_[static_cast<size_t>(to)];
      if (!node.up) return;
      node.waiting.push_back({operation, [this, kind, index, to, finish](const auto& reply) {
                                if (Cut(kind, index, kNodeKind, to)) return;
                                events_.After(events_.Between(100, 3 * kMs),
                                              [finish, reply] { finish(reply); });
                              }});
      if (node.running.empty()) Commit(node);
    });
  }
}

void ClusterSimulation::Commit(Node& node) {
  while (!node.waiting.empty() && node.running.size() < 64) {
    node.running.push_back(std::move(node.waiting.front()));
    node.waiting.pop_front();
  }
  if (node.running.empty()) return;
  const bool slow = events_.now_us() < node.slow_until_us;
  const int64_t takes_us =
      slow ? events_.Between(200 * kMs, 3 * kSecond) : events_.Between(kMs, 6 * kMs);
  events_.After(takes_us, [this, &node, life = node.life] {
    if (node.life != life) return;  // the primary was lost meanwhile
    auto batch = std::exchange(node.running, {});
    Apply(node, batch, true);
    Commit(node);
  });
}

void ClusterSimulation::Apply(Node& node, std::vector<Node::Waiting>& batch, bool told) {
  std::vector<Operation> operations;
  for (const auto& one : batch) operations.push_back(one.operation);
  const billing::Applied applied = billing::Apply(node.state, operations, ClockUs(), policy_);
  counts_.operations += static_cast<int64_t>(batch.size());
  ++counts_.commits;
  if (!Check(node, applied)) return;
  for (size_t i = 0; told && i < batch.size(); ++i) {
    if (batch[i].answer) batch[i].answer(applied.replies[i]);
  }
}

// Invariants of every commit.
bool ClusterSimulation::Check(Node& node, const billing::Applied& applied) {
  if (!applied.violations.empty()) Broken("the ledger: " + applied.violations.front());
  for (const std::string& name : applied.wallets) {
    const billing::Wallet& wallet = node.state.wallets.at(name);
    if (wallet.available_nano_usd() < 0 || wallet.paid_nano_usd < 0 || wallet.held_nano_usd < 0) {
      Broken(name + " has spent more than it has");
    }
    if (&NodeOf(name) != &node) Broken(name + " is on another node");
  }
  for (const auto* ids : {&applied.new_holds, &applied.changed_holds}) {
    for (const Id& id : *ids) {
      if (node.state.holds.at(id).state == billing::HoldState::kOpen) {
        node.open.insert(id);
      } else {
        node.open.erase(id);
      }
    }
  }
  for (const billing::Entry& entry : applied.entries) {
    Node::Chain& chain = node.chains[entry.workspace];
    if (entry.sequence != ++chain.sequence || entry.hash != billing::EntryHash(chain.head, entry)) {
      Broken("the chain of " + entry.workspace + " is broken");
    }
    chain.head = entry.hash;
  }
  return why_.empty();
}

void ClusterSimulation::Expire(Node& node) {
  if (node.up) {
    for (const Id& id : node.open) {
      const billing::Hold& hold = node.state.holds.at(id);
      if (hold.expires_us >= ClockUs()) continue;
      node.waiting.push_back({billing::Expire{hold.id, hold.workspace}, nullptr});
      ++counts_.expired;
    }
    for (const auto& [key, lease] : node.state.leases) {
      if (lease.expires_us >= ClockUs()) continue;
      node.waiting.push_back(
          {billing::ExpireLease{lease.workspace, lease.lessee, lease.month}, nullptr});
    }
    if (node.running.empty()) Commit(node);
  }
  events_.After(kSecond, [this, &node] { Expire(node); });
}

// --- faults

void ClusterSimulation::Crash(int kind, int index, int64_t down_us) {
  ++counts_.crashes;
  Process& process = kind == kGatewayKind
                         ? gateways_[static_cast<size_t>(index)]
                         : static_cast<Process&>(routers_[static_cast<size_t>(index)]);
  if (!process.up) return;
  process.up = false;
  ++process.life;
  if (kind == kRouterKind) routers_[static_cast<size_t>(index)].leases.clear();
  events_.After(down_us, [this, kind, index] {
    if (kind == kGatewayKind) {
      gateways_[static_cast<size_t>(index)].up = true;
      return;
    }
    // The router settles the requests of its journal and continues with its outbox.
    Router& router = routers_[static_cast<size_t>(index)];
    router.up = true;
    router.sending = false;
    while (!router.running.empty()) {
      Settle(index, router.running.begin()->first, Outcome::kRecovered, false);
    }
    Deliver(index);
  });
}

void ClusterSimulation::FailOver(int index, int64_t down_us) {
  Node& node = nodes_[static_cast<size_t>(index)];
  if (!node.up) return;
  ++counts_.failovers;
  node.up = false;
  ++node.life;
  node.waiting.clear();
  auto batch = std::exchange(node.running, {});
  // The batch may or may not be on the standby: its callers get no response.
  if (!batch.empty() && events_.OneIn(2)) {
    Apply(node, batch, false);
  } else if (!batch.empty()) {
    ++counts_.lost_commits;
  }
  events_.After(down_us, [&node] { node.up = true; });
}

void ClusterSimulation::PlanFault() {
  if (events_.now_us() > kFaultsUs) return;
  events_.After(events_.Between(100 * kMs, 2 * kSecond), [this] { PlanFault(); });
  const auto any = [this](int of) { return static_cast<int>(events_.Below(of)); };
  switch (events_.Below(6)) {
    case 0:
      return Crash(kGatewayKind, any(kGateways), events_.Between(kSecond, 5 * kSecond));
    case 1:
    case 2:
      return Crash(kRouterKind, any(kRouters), events_.Between(kSecond, 60 * kSecond));
    case 3:
      return FailOver(any(kNodes), events_.Between(kSecond, 25 * kSecond));
    case 4: {
      ++counts_.slow_disks;
      nodes_[static_cast<size_t>(any(kNodes))].slow_until_us =
          events_.now_us() + events_.Between(kSecond, 10 * kSecond);
      return;
    }
    default: {
      // A process loses contact with another one, or with all of the nodes.
      ++counts_.cuts;
      const int64_t until_us = events_.now_us() + events_.Between(kSecond, 50 * kSecond);
      const int router = any(kRouters);
      if (events_.OneIn(2)) {
        const bool many = events_.OneIn(2);
        for (int i = 0; i < kGateways; ++i) {
          if (events_.OneIn(many ? 2 : kGateways)) {
            cuts_[{kGatewayKind, i, kRouterKind, router}] = until_us;
          }
        }
      } else {
        const bool gateway = events_.OneIn(2);
        const int index = gateway ? any(kGateways) : router;
        const int kind = gateway ? kGatewayKind : kRouterKind;
        const bool all = events_.OneIn(4);
        for (int i = 0; i < kNodes; ++i) {
          if (all || events_.OneIn(kNodes)) cuts_[{kind, index, kNodeKind, i}] = until_us;
        }
      }
    }
  }
}

}  // namespace tollgate::simulation
