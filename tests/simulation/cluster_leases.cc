// Credit that routers spend without asking (docs/adr/0042).
#include <algorithm>
#include <utility>

#include "common/money/money.h"
#include "tests/simulation/cluster_simulation.h"

namespace tollgate::simulation {
namespace {

// Workspaces with most of the load.
constexpr int kLeased = 4;
constexpr int64_t kOutputBound = 1'000;

}  // namespace

bool ClusterSimulation::HasLeases(const std::string& workspace) const {
  return std::find(workspaces_.begin(), workspaces_.begin() + kLeased, workspace) !=
         workspaces_.begin() + kLeased;
}

ClusterSimulation::Router::Held& ClusterSimulation::LeaseOf(int router,
                                                            const std::string& workspace) {
  Router& here = routers_[static_cast<size_t>(router)];
  auto found = here.leases.find(workspace);
  if (found == here.leases.end()) {
    found = here.leases.emplace(workspace, Router::Held{{}, here.next_lease++}).first;
  }
  Router::Held& held = found->second;
  if (held.lease.IsOver(events_.now_us())) held = {held.lease.Next(), here.next_lease++};
  return held;
}

std::shared_ptr<const billing::Admission> ClusterSimulation::Admit(int router, int64_t number) {
  Request& request = requests_[static_cast<size_t>(number)];
  Router::Held& held = LeaseOf(router, request.workspace);
  const int64_t amount =
      HoldNanoUsd(CostPicoUsd(request.rates, request.prompt, std::min(kOutputBound, kSliceTokens)));
  const bool admitted = held.lease.Admit(amount, events_.now_us());
  AskForLease(router, request.workspace);
  if (!admitted) return nullptr;
  ++counts_.admitted;
  auto admission = std::make_shared<billing::Admission>();
  billing::Authorize& item = admission->authorize;
  item.request_id = request.id;
  item.workspace = request.workspace;
  item.key_id = "key";
  item.model = "model";
  item.rates = request.rates;
  item.prompt_bound = request.prompt;
  item.output_bound = kOutputBound;
  item.streamed = true;
  item.attempt = request.attempt;
  const Router& here = routers_[static_cast<size_t>(router)];
  admission->lessee = "router-" + std::to_string(router) + "-" + std::to_string(here.life) + "-" +
                      std::to_string(held.number);
  admission->month = held.lease.month();
  admission->authorized_nano_usd = amount;
  request.authorized = amount;
  request.slice = HoldNanoUsd(CostPicoUsd(request.rates, 0, kSliceTokens));
  return admission;
}

void ClusterSimulation::SendBack(int64_t number, int32_t attempt) {
  ++counts_.no_lease;
  ++requests_[static_cast<size_t>(number)].sent;
  events_.After(events_.Between(100, 2'000), [this, number, attempt] {
    Request& request = requests_[static_cast<size_t>(number)];
    if (!Waits(request) || request.attempt != attempt) return;
    request.leased = request.may_be_leased = false;
    Authorize(number, events_.now_us() + 3 * kSecond);
  });
}

void ClusterSimulation::AskForLease(int router, const std::string& workspace) {
  Router::Held& held = LeaseOf(router, workspace);
  const auto ask = held.lease.NextAsk(events_.now_us());
  if (!ask) return;
  const Router& here = routers_[static_cast<size_t>(router)];
  billing::TakeLease op;
  op.workspace = workspace;
  op.lessee = "router-" + std::to_string(router) + "-" + std::to_string(here.life) + "-" +
              std::to_string(held.number);
  op.month = ask->month;
  op.used_nano_usd = ask->used_nano_usd;
  op.wanted_nano_usd = ask->wanted_nano_usd;
  Call(kRouterKind, router, op, kSecond,
       [this, router, workspace, number = held.number](const auto& reply) {
         auto& leases = routers_[static_cast<size_t>(router)].leases;
         const auto found = leases.find(workspace);
         if (found == leases.end() || found->second.number != number) return;
         inference_router::CreditLease& lease = found->second.lease;
         if (!reply) return lease.OnNoAnswer();
         counts_.recalled += reply->lease.recalled ? 1 : 0;
         lease.OnAnswer({.denied = !reply->ok,
                         .month = reply->lease.month,
                         .granted_nano_usd = reply->lease.granted_nano_usd,
                         .valid_us = reply->lease.valid_ms * 1'000,
                         .recalled = reply->lease.recalled},
                        events_.now_us());
       });
}

void ClusterSimulation::RenewLeases(int router) {
  Router& here = routers_[static_cast<size_t>(router)];
  if (here.up) {
    std::vector<std::string> workspaces;
    for (const auto& [workspace, held] : here.leases) workspaces.push_back(workspace);
    for (const std::string& workspace : workspaces) AskForLease(router, workspace);
  }
  events_.After(kSecond, [this, router] { RenewLeases(router); });
}

void ClusterSimulation::EndAdmission(int router, const Try& run, billing::Settle& op,
                                     bool recovered) {
  const billing::Admission& admitted = *run.admission;
  int64_t kept = admitted.authorized_nano_usd;
  if (!run.told && !recovered) {
    const bool free = op.outcome == billing::Outcome::kFailedBeforeOutput;
    kept = free ? 0
                : std::min(kept, HoldNanoUsd(CostPicoUsd(admitted.authorize.rates, op.usage.prompt,
                                                         op.usage.completion)));
  }
  auto settled = std::make_shared<billing::Admission>(admitted);
  settled->authorized_nano_usd = kept;
  op.admission = std::move(settled);
  auto& leases = routers_[static_cast<size_t>(router)].leases;
  const auto found = leases.find(admitted.authorize.workspace);
  if (found == leases.end()) return;
  const std::string& lessee = admitted.lessee;
  if (!lessee.ends_with("-" + std::to_string(found->second.number))) return;
  if (!recovered) found->second.lease.Finish(admitted.authorized_nano_usd, kept);
}

}  // namespace tollgate::simulation
