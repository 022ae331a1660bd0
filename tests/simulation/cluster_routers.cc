// Routers: they run the answers of engines and settle them from an outbox that survives a crash.
#include <algorithm>
#include <utility>

#include "tests/simulation/cluster_simulation.h"

namespace tollgate::simulation {
namespace {

using billing::Outcome;

// Values of the product: how long a router continues without billing, and the interval of
// heartbeats.
constexpr int64_t kCreditWaitUs = 30 * kSecond, kHeartbeatUs = 5 * kSecond;
// How long a router continues without its gateway.
constexpr int64_t kUnheardUs = 4 * kSecond;
constexpr int64_t kTokensOfAStep = 20, kStepUs = 200 * kMs;

}  // namespace

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
  // A router continues for a while before it detects the loss of its gateway. Otherwise it is told
  // when the caller has disconnected or the gateway has moved the request.
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

// Delivers settlements one after the other, each until the ledger has answered.
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
      // The ledger of another workspace may respond.
      here.outbox.push_back(here.outbox.front());
      here.outbox.pop_front();
    }
    Deliver(router);
  });
}

}  // namespace tollgate::simulation
