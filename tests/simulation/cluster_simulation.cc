#include "tests/simulation/cluster_simulation.h"

#include <algorithm>
#include <utility>

#include "common/base/ledger_shard.h"
#include "common/money/money.h"
#include "services/billing/domain/chain.h"

namespace tollgate::simulation {
namespace {

using billing::Outcome;

constexpr int64_t kMs = 1'000, kSecond = 1'000'000;
// Of the load, of the faults, and of what is left to be delivered and to expire.
constexpr int64_t kLoadUs = 40 * kSecond, kFaultsUs = 60 * kSecond, kEndUs = 400 * kSecond;
constexpr int kWorkspaces = 40;
// Virtual time begins 20 s before the end of a month.
constexpr int64_t kEpochUs = 1'764'547'180 * kSecond;

// The product's: an admission waits for the ledger (ADR 0034), a hold that is released or refused,
// a router that is lost, one that goes on without billing.
constexpr int64_t kAdmissionUs = 3 * kSecond, kTryUs = kSecond, kRefusalUs = 600 * kSecond,
                  kLostUs = 800 * kMs, kCreditWaitUs = 30 * kSecond, kHeartbeatUs = 5 * kSecond;
// How long a router goes on without its gateway.
constexpr int64_t kUnheardUs = 4 * kSecond;
constexpr int64_t kFirstTokenUs = 2 * kSecond;
constexpr int64_t kTokensOfAStep = 20, kStepUs = 200 * kMs;
constexpr int32_t kMoves = 2;

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
  // Enough for some, too little for others, so that holds, slices and refusals meet.
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
  // Now and then a message arrives twice: a client that repeats a call whose answer is late.
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

// What every commit must keep.
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

// --- gateways

void ClusterSimulation::Ask(int gateway) {
  if (events_.now_us() > kLoadUs) return;
  events_.After(events_.Between(kMs, 5 * kSecond), [this, gateway] { Ask(gateway); });
  const Process& process = gateways_[static_cast<size_t>(gateway)];
  if (!process.up) return;
  if (events_.OneIn(20)) {
    billing::AddCredit op;
    op.workspace = workspaces_[static_cast<size_t>(events_.Below(kWorkspaces))];
    op.command_id = "credit-" + std::to_string(credits_.size());
    op.amount_nano_usd = events_.Between(1, 300'000);
    op.granted = events_.OneIn(3);
    op.actor = "tester";
    return TopUp(gateway, std::move(op));
  }
  const auto number = static_cast<int64_t>(requests_.size());
  Request& request = requests_.emplace_back();
  request.id = Id::Make(ClockUs() / 1000, 0, static_cast<uint64_t>(number) + 1);
  // A few workspaces get most of the load.
  request.workspace = workspaces_[static_cast<size_t>(
      events_.OneIn(2) ? events_.Below(4) : events_.Below(kWorkspaces))];
  request.rates = events_.OneIn(2) ? Rates{150'101, 600'307} : Rates{999, 1'001};
  request.prompt = events_.Between(1, 200);
  request.length = events_.Between(1, 600);
  request.leaves = events_.OneIn(10);
  request.gateway = gateway;
  request.gateway_life = process.life;
  ++counts_.requests;
  // Not every gateway was told of the leases.
  request.may_be_leased = HasLeases(request.workspace);
  request.leased = request.may_be_leased && !events_.OneIn(4);
  if (request.leased) return Start(number);
  Authorize(number, events_.now_us() + kAdmissionUs);
}

void ClusterSimulation::Authorize(int64_t number, int64_t deadline_us) {
  const Request& request = requests_[static_cast<size_t>(number)];
  billing::Authorize op;
  op.request_id = request.id;
  op.workspace = request.workspace;
  op.key_id = "key";
  op.model = "model";
  op.rates = request.rates;
  op.prompt_bound = request.prompt;
  op.output_bound = 1'000;
  op.streamed = true;
  op.attempt = request.attempt;
  Call(kGatewayKind, request.gateway, op, kTryUs, [this, number, deadline_us](const auto& reply) {
    Request& request = requests_[static_cast<size_t>(number)];
    if (!reply && request.may_be_leased && request.attempt == 0) {
      // The hold may have been placed.
      request.may_be_leased = false;
      request.leased = true;
      return Start(number);
    }
    if (!reply && events_.now_us() < deadline_us) return Authorize(number, deadline_us);
    if (!reply || !reply->ok) return Refuse(number, Told::kRefused);
    request.authorized = reply->authorized_nano_usd;
    request.slice = reply->slice_nano_usd;
    Start(number);
  });
}

// Sends the request to a router, and watches it.
void ClusterSimulation::Start(int64_t number) {
  Request& request = requests_[static_cast<size_t>(number)];
  const int router = static_cast<int>(events_.Below(kRouters));
  const std::pair key(number, request.attempt);
  if (Cut(kGatewayKind, request.gateway, kRouterKind, router)) {
    Lose(number, request.attempt);
  } else {
    events_.After(events_.Between(100, 2 * kMs), [this, router, key] {
      Router& there = routers_[static_cast<size_t>(router)];
      if (!there.up) return Lose(key.first, key.second);
      const Request& request = requests_[static_cast<size_t>(key.first)];
      auto admission = request.leased ? Admit(router, key.first) : nullptr;
      if (request.leased && !admission) return SendBack(key.first, key.second);
      there.running[key] = {.request = key.first,
                            .attempt = key.second,
                            .authorized = request.authorized,
                            .heard_us = events_.now_us(),
                            .admission = std::move(admission)};
      events_.After(events_.Between(50 * kMs, kFirstTokenUs),
                    [this, router, key, life = there.life] {
                      if (routers_[static_cast<size_t>(router)].life == life) Step(router, key);
                    });
    });
  }
  ++request.sent;
  Watch(number, router);
}

// A router that is lost is left, unless it has sent the request back.
void ClusterSimulation::Watch(int64_t number, int router) {
  const int64_t life = routers_[static_cast<size_t>(router)].life;
  const int64_t sent = requests_[static_cast<size_t>(number)].sent;
  events_.After(kLostUs, [this, number, router, life, sent] {
    const Request& request = requests_[static_cast<size_t>(number)];
    if (!Waits(request) || request.sent != sent) return;
    const Router& there = routers_[static_cast<size_t>(router)];
    if (!there.up || there.life != life) return Move(number);
    Watch(number, router);
  });
}

// Whether its gateway lives and the caller has not been told the end.
bool ClusterSimulation::Waits(const Request& request) const {
  const Process& gateway = gateways_[static_cast<size_t>(request.gateway)];
  return gateway.up && gateway.life == request.gateway_life && !request.ended;
}

// The gateway finds that the way to its router is lost.
void ClusterSimulation::Lose(int64_t number, int32_t attempt) {
  events_.After(kLostUs, [this, number, attempt] {
    const Request& request = requests_[static_cast<size_t>(number)];
    if (Waits(request) && request.attempt == attempt) Move(number);
  });
}

void ClusterSimulation::Move(int64_t number) {
  Request& request = requests_[static_cast<size_t>(number)];
  // After output nothing moves.
  if (request.told_tokens > 0 || request.attempt == kMoves) return Refuse(number, Told::kFailed);
  ++request.attempt;
  ++request.sent;
  request.leased = false;
  ++counts_.moved;
  Authorize(number, events_.now_us() + kAdmissionUs);
}

// The caller gets an error. One without output is free, whatever a router reports.
void ClusterSimulation::Refuse(int64_t number, Told told) {
  Request& request = requests_[static_cast<size_t>(number)];
  if (request.ended) return;
  request.ended = true;
  request.told = told;
  if (told == Told::kFailed && request.told_tokens > 0) return;  // the router settles what it made
  request.told = Told::kRefused;
  Void(request.gateway, {request.id, request.workspace, "refused", true},
       events_.now_us() + kRefusalUs);
}

void ClusterSimulation::Void(int gateway, const billing::Void& op, int64_t deadline_us) {
  Call(kGatewayKind, gateway, op, 2 * kSecond, [this, gateway, op, deadline_us](const auto& reply) {
    if (reply || events_.now_us() > deadline_us) return;
    events_.After(
        events_.Between(50 * kMs, 2 * kSecond),
        [this, gateway, op, deadline_us, life = gateways_[static_cast<size_t>(gateway)].life] {
          const Process& here = gateways_[static_cast<size_t>(gateway)];
          if (here.up && here.life == life) Void(gateway, op, deadline_us);
        });
  });
}

void ClusterSimulation::TopUp(int gateway, billing::AddCredit op) {
  Credit& credit = credits_[op.workspace + "/" + op.command_id];
  credit.workspace = op.workspace;
  credit.nano_usd = op.amount_nano_usd;
  Call(kGatewayKind, gateway, op, 2 * kSecond, [this, gateway, op](const auto& reply) {
    if (!reply) return TopUp(gateway, op);
    if (!reply->ok) return Broken("a top-up was refused");
    credits_[op.workspace + "/" + op.command_id].acknowledged = true;
  });
}

// --- routers

void ClusterSimulation::Step(int router, std::pair<int64_t, int32_t> key) {
  Router& here = routers_[static_cast<size_t>(router)];
  const auto found = here.running.find(key);
  if (found == here.running.end() || !here.up) return;
  Try& run = found->second;
  Request& request = requests_[static_cast<size_t>(run.request)];
  const auto again = [this, router, key, life = here.life](int64_t delay_us) {
    events_.After(delay_us, [this, router, key, life] {
      if (routers_[static_cast<size_t>(router)].life == life) Step(router, key);
    });
  };
  const bool heard = !Cut(kGatewayKind, request.gateway, kRouterKind, router);
  if (!heard && run.cut_us == 0) {
    run.cut_us = events_.now_us();
    Lose(run.request, run.attempt);
  }
  if (heard) run.cut_us = 0;
  // It goes on for a while before it finds that it has lost its gateway. Else it is told when
  // whoever asked for it is gone, or has moved it.
  if (heard ? !Waits(request) || request.attempt != run.attempt
            : events_.now_us() - run.cut_us > kUnheardUs) {
    return Settle(router, key, Outcome::kClientGone, false);
  }
  const int64_t next = std::min(run.tokens + kTokensOfAStep, request.length);
  if (Cost(request.rates, request.prompt, next) > run.authorized) {
    billing::Extend op;
    op.request_id = request.id;
    op.workspace = request.workspace;
    op.sequence = ++run.sequence;
    op.usage = {request.prompt, 0, 0, run.tokens, 0};
    op.authorized_total_nano_usd = run.authorized + std::max<int64_t>(request.slice, 1);
    op.attempt = run.attempt;
    op.admission = run.admission;
    run.told = true;
    const int64_t since_us = run.heard_us;
    Call(kRouterKind, router, op, 2 * kSecond,
         [this, router, key, since_us, again](const auto& reply) {
           Router& here = routers_[static_cast<size_t>(router)];
           const auto found = here.running.find(key);
           if (found == here.running.end()) return;
           if (!reply) {
             if (events_.now_us() - since_us < kCreditWaitUs) return again(50 * kMs);
             return Settle(router, key, Outcome::kCompleted, true);
           }
           found->second.heard_us = events_.now_us();
           const int64_t before = found->second.authorized;
           found->second.authorized = std::max(before, reply->authorized_nano_usd);
           if (found->second.authorized > before) return again(0);
           Settle(router, key, Outcome::kCompleted, true);
         });
    return;
  }
  run.tokens = next;
  request.most = std::max(request.most, next);
  if (request.leaves && heard && run.tokens > request.length / 2) {
    request.ended = true;
    request.told = Told::kLeft;
    return Settle(router, key, Outcome::kClientGone, false);
  }
  if (run.tokens == request.length) return Settle(router, key, Outcome::kCompleted, false);
  if (heard) request.told_tokens = run.tokens;
  if (events_.now_us() - run.heard_us > kHeartbeatUs) {
    run.heard_us = events_.now_us();
    billing::Heartbeat op{request.id,     request.workspace,
                          ++run.sequence, {request.prompt, 0, 0, run.tokens, 0},
                          run.attempt,    run.admission};
    run.told = true;
    Call(kRouterKind, router, op, 2 * kSecond, [](const auto&) {});
  }
  again(events_.Between(kStepUs / 2, kStepUs));
}

// The settlement is on the router's disk before the caller sees the end.
void ClusterSimulation::Settle(int router, std::pair<int64_t, int32_t> key, Outcome outcome,
                               bool cut) {
  Router& here = routers_[static_cast<size_t>(router)];
  const auto found = here.running.find(key);
  if (found == here.running.end()) return;
  const Try run = found->second;
  here.running.erase(found);
  Request& request = requests_[static_cast<size_t>(run.request)];
  billing::Settle op;
  op.request_id = request.id;
  op.workspace = request.workspace;
  op.sequence = run.sequence + 1;
  op.usage = {request.prompt, 0, 0, run.tokens, 0};
  op.outcome = run.tokens == 0 ? Outcome::kFailedBeforeOutput : outcome;
  op.cut_by_credit = cut && run.tokens > 0;
  op.engine = "engine";
  op.attempt = run.attempt;
  if (run.admission) EndAdmission(router, run, op, outcome == Outcome::kRecovered);
  here.outbox.push_back(op);
  Deliver(router);
  if (outcome != Outcome::kCompleted || request.ended || request.attempt != run.attempt) return;
  if (run.tokens == 0) return Refuse(run.request, Told::kRefused);
  events_.After(events_.Between(100, 2 * kMs),
                [this, number = run.request, attempt = run.attempt, tokens = run.tokens, router] {
                  Request& request = requests_[static_cast<size_t>(number)];
                  if (!Waits(request) || request.attempt != attempt) return;
                  if (Cut(kGatewayKind, request.gateway, kRouterKind, router))
                    return Lose(number, attempt);
                  request.ended = true;
                  request.told = Told::kComplete;
                  request.told_tokens = tokens;
                });
}

// One after the other, each until the ledger has answered it.
void ClusterSimulation::Deliver(int router) {
  Router& here = routers_[static_cast<size_t>(router)];
  if (here.sending || here.outbox.empty() || !here.up) return;
  here.sending = true;
  Call(kRouterKind, router, here.outbox.front(), 2 * kSecond, [this, router](const auto& reply) {
    Router& here = routers_[static_cast<size_t>(router)];
    here.sending = false;
    if (reply) {
      here.outbox.pop_front();
    } else if (here.outbox.size() > 1) {
      // Another workspace's ledger may answer.
      here.outbox.push_back(here.outbox.front());
      here.outbox.pop_front();
    }
    Deliver(router);
  });
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
    // It settles what its journal has, and goes on with its outbox.
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
  // It was on the standby or it was not: nobody is told.
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
      // A process loses another one, or all of the nodes.
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
