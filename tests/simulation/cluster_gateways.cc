// Gateways: they admit requests of callers, watch them at a router, move them to another one and
// end them.
#include <utility>

#include "tests/simulation/cluster_simulation.h"

namespace tollgate::simulation {
namespace {

constexpr int64_t kLoadUs = 40 * kSecond;
// Values of the product: how long an admission waits for the ledger (ADR 0034), one attempt, the
// repetition of a refusal, the detection of a lost router.
constexpr int64_t kAdmissionUs = 3 * kSecond, kTryUs = kSecond, kRefusalUs = 600 * kSecond,
                  kLostUs = 800 * kMs;
constexpr int64_t kFirstTokenUs = 2 * kSecond;
constexpr int32_t kMoves = 2;

}  // namespace

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
  // Some gateways have not learned of the leases.
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

// Leaves a lost router, unless the router has sent the request back.
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

// Whether the gateway is running and the caller has not got the end.
bool ClusterSimulation::Waits(const Request& request) const {
  const Process& gateway = gateways_[static_cast<size_t>(request.gateway)];
  return gateway.up && gateway.life == request.gateway_life && !request.ended;
}

// The gateway detects that the connection to its router is lost.
void ClusterSimulation::Lose(int64_t number, int32_t attempt) {
  events_.After(kLostUs, [this, number, attempt] {
    const Request& request = requests_[static_cast<size_t>(number)];
    if (Waits(request) && request.attempt == attempt) Move(number);
  });
}

void ClusterSimulation::Move(int64_t number) {
  Request& request = requests_[static_cast<size_t>(number)];
  // After output the request cannot move.
  if (request.told_tokens > 0 || request.attempt == kMoves) return Refuse(number, Told::kFailed);
  ++request.attempt;
  ++request.sent;
  request.leased = false;
  ++counts_.moved;
  Authorize(number, events_.now_us() + kAdmissionUs);
}

// The caller gets an error. A request without output is free, whatever a router reports.
void ClusterSimulation::Refuse(int64_t number, Told told) {
  Request& request = requests_[static_cast<size_t>(number)];
  if (request.ended) return;
  request.ended = true;
  request.told = told;
  if (told == Told::kFailed && request.told_tokens > 0)
    return;  // the router settles what was generated
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

}  // namespace tollgate::simulation
