#include "services/billing/alerts/alert_rules.h"

#include <algorithm>

namespace tollgate::billing::alerts {
namespace {

using Wide = __int128;

// Maximum number of entries that one check searches for a top-up.
constexpr int64_t kMaxMarkAge = 1000;

AlertState Find(const std::vector<AlertState>& states, AlertKind kind, int level) {
  for (const AlertState& state : states) {
    if (state.kind == kind && state.level == level) return state;
  }
  AlertState none;
  none.kind = kind;
  none.level = level;
  return none;
}

void Fire(AlertState state, std::vector<Step>& steps) {
  state.fired = true;
  steps.push_back({std::move(state), true});
}

void Arm(AlertState state, std::vector<Step>& steps) {
  state.fired = false;
  steps.push_back({std::move(state), false});
}

void DecideLowBalance(const AlertSetting& setting, const Facts& facts, AlertState state,
                      std::vector<Step>& steps) {
  const int64_t limit = setting.low_balance_nano_usd;
  if (limit <= 0) {
    if (state.fired) Arm(std::move(state), steps);
    return;
  }
  const bool low = facts.available_nano_usd < limit;
  const int64_t mark = state.mark;
  state.mark = facts.sequence;
  if (!state.fired) {
    if (low) Fire(std::move(state), steps);
    return;
  }
  if (low) return;
  // The end of a hold may raise the balance a little above the limit, which is not enough to arm
  // the alert.
  if (Wide{facts.available_nano_usd} * 10 > Wide{limit} * 12 || facts.topped_up) {
    Arm(std::move(state), steps);
  } else if (facts.sequence - mark > kMaxMarkAge) {
    steps.push_back({std::move(state), false});
  }
}

void DecideCap(const AlertSetting& setting, const Facts& facts, int percent, AlertState state,
               std::vector<Step>& steps) {
  const auto& wanted = setting.cap_percents;
  const bool on = std::find(wanted.begin(), wanted.end(), percent) != wanted.end();
  // A cap of zero turns requests off; it is not a budget.
  if (!on || facts.cap_nano_usd.value_or(0) <= 0) return;
  const int64_t cap = *facts.cap_nano_usd;
  const bool reached = Wide{facts.month_spent_nano_usd} * 100 >= Wide{cap} * percent;
  const bool armed = !state.fired || state.month != facts.month;
  if (reached && armed) {
    state.month = facts.month;
    state.mark = cap;
    Fire(std::move(state), steps);
  } else if (!reached && !armed && cap > state.mark) {
    Arm(std::move(state), steps);
  }
}

void DecideDispute(const DisputeFact& newest, AlertState state, std::vector<Step>& steps) {
  if (newest.at_us <= state.mark) return;
  state.mark = newest.at_us;
  Fire(std::move(state), steps);
}

void DecideFlag(bool on, AlertState state, std::vector<Step>& steps) {
  if (on && !state.fired) Fire(std::move(state), steps);
  if (!on && state.fired) Arm(std::move(state), steps);
}

}  // namespace

std::string_view Name(AlertKind kind) {
  switch (kind) {
    case AlertKind::kLowBalance:
      return "low_balance";
    case AlertKind::kCapPercent:
      return "cap_percent";
    case AlertKind::kReloadFailed:
      return "reload_failed";
    case AlertKind::kReloadPaused:
      return "reload_paused";
    case AlertKind::kBooksDisagree:
      return "books_disagree";
    case AlertKind::kDisputeOpened:
      return "dispute_opened";
    case AlertKind::kDisputeWon:
      return "dispute_won";
    case AlertKind::kDisputeLost:
      return "dispute_lost";
    case AlertKind::kFrozen:
      return "frozen";
  }
  return "unknown";
}

std::string_view Name(Channel channel) { return channel == Channel::kMail ? "mail" : "webhook"; }

std::vector<Step> Decide(const AlertSetting& setting, const Facts& facts,
                         const std::vector<AlertState>& states) {
  std::vector<Step> steps;
  DecideFlag(facts.books_disagree, Find(states, AlertKind::kBooksDisagree, 0), steps);
  if (setting.updated_us == 0) return steps;
  DecideLowBalance(setting, facts, Find(states, AlertKind::kLowBalance, 0), steps);
  for (const int percent : kCapPercents) {
    DecideCap(setting, facts, percent, Find(states, AlertKind::kCapPercent, percent), steps);
  }
  const bool reload = setting.reload_paused && facts.reload_enabled;
  // A pause tells more than the decline before it.
  if (!reload || !facts.reload_paused) {
    DecideFlag(reload && facts.reload_declined, Find(states, AlertKind::kReloadFailed, 0), steps);
  }
  DecideFlag(reload && facts.reload_paused, Find(states, AlertKind::kReloadPaused, 0), steps);
  DecideDispute(facts.dispute_opened, Find(states, AlertKind::kDisputeOpened, 0), steps);
  DecideDispute(facts.dispute_won, Find(states, AlertKind::kDisputeWon, 0), steps);
  DecideDispute(facts.dispute_lost, Find(states, AlertKind::kDisputeLost, 0), steps);
  DecideFlag(facts.frozen, Find(states, AlertKind::kFrozen, 0), steps);
  return steps;
}

}  // namespace tollgate::billing::alerts
