// Checks the result of a run.
#include <map>
#include <string>

#include "tests/simulation/cluster_simulation.h"

namespace tollgate::simulation {

bool ClusterSimulation::CheckBooks() {
  for (const Router& router : routers_) {
    if (!router.running.empty() || !router.outbox.empty()) Broken("a router has something left");
  }
  std::map<std::string, int64_t> spent;
  for (size_t number = 0; number < requests_.size(); ++number) {
    const Request& request = requests_[number];
    const auto& holds = NodeOf(request.workspace).state.holds;
    const auto found = holds.find(request.id);
    const billing::Hold none;
    const billing::Hold& hold = found == holds.end() ? none : found->second;
    const std::string name = "request " + std::to_string(number) + " of " + request.workspace +
                             ", attempt " + std::to_string(request.attempt) + ", " +
                             std::string(billing::HoldStateName(hold.state)) + ", charged " +
                             std::to_string(hold.charged_nano_usd) + ": ";
    if (found != holds.end() && hold.state == billing::HoldState::kOpen) Broken(name + "open");
    const int64_t cost = hold.charged_nano_usd + hold.overrun_nano_usd;
    spent[request.workspace] += hold.charged_nano_usd;
    counts_.overrun += hold.overrun_nano_usd;
    // A request admitted from a lease: the lease expired before the ledger knew of the request.
    if (request.leased) counts_.lease_overrun += hold.overrun_nano_usd;
    if (hold.overrun_nano_usd > 0 && hold.state != billing::HoldState::kCorrected &&
        !request.leased) {
      Broken(name + "an overrun although its hold had not expired");
    }
    if (cost > Cost(request.rates, request.prompt, request.most)) {
      Broken(name + "more than an engine made");
    }
    switch (request.told) {
      case Told::kComplete:
        ++counts_.complete;
        if (cost != Cost(request.rates, request.prompt, request.told_tokens)) {
          Broken(name + "not what its caller was told, " + std::to_string(request.told_tokens));
        }
        break;
      case Told::kRefused: {
        ++counts_.refused;
        // A gateway that crashed before the ledger had its refusal cannot repeat it.
        const Process& gateway = gateways_[static_cast<size_t>(request.gateway)];
        if (cost != 0 && gateway.life == request.gateway_life) Broken(name + "was refused");
        break;
      }
      case Told::kFailed:
        ++counts_.failed;
        break;
      case Told::kLeft:
        ++counts_.left;
        break;
      case Told::kNothing:
        ++counts_.unknown;
        if (gateways_[static_cast<size_t>(request.gateway)].life == request.gateway_life) {
          Broken(name + "its caller still waits");
        }
        break;
    }
  }
  std::map<std::string, int64_t> given;
  for (const auto& [command, credit] : credits_) {
    const auto& commands = NodeOf(credit.workspace).state.commands;
    const auto found = commands.find(
        billing::CommandKey(credit.workspace, command.substr(credit.workspace.size() + 1)));
    if (found != commands.end()) {
      given[credit.workspace] += found->second.amount_nano_usd;
      ++counts_.top_ups;
    } else if (credit.acknowledged) {
      Broken("the top-up " + command + " is lost");
    }
  }
  for (const Node& node : nodes_) {
    for (const auto& [name, wallet] : node.state.wallets) {
      if (wallet.held_nano_usd != 0 || wallet.open_holds != 0)
        Broken(name + " has a hold or a lease left");
      if (wallet.posted_nano_usd() != given[name] - spent[name]) Broken("the sum of " + name);
    }
    for (const auto& [key, month] : node.state.months) {
      if (month.held_nano_usd != 0) Broken("a month has a hold left");
    }
  }
  return why_.empty();
}

}  // namespace tollgate::simulation
