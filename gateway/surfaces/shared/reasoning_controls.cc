#include "gateway/surfaces/shared/reasoning_controls.h"

#include <string>

#include "common/base/try.h"
#include "gateway/surfaces/shared/engine_fields.h"

namespace tollgate::gateway {

namespace {

// Converts a budget for engines that only know levels: low below kMediumFrom, medium below
// kHighFrom, else high.
constexpr int64_t kMediumFrom = 4096;
constexpr int64_t kHighFrom = 16384;

// The members of a request that set how much to reason.
struct Wish {
  json::Value enabled, effort, max_tokens;  // members of `reasoning`; null: absent
  json::Value top_effort;                   // `reasoning_effort`
  int64_t budget = 0;
};

Fail<Error> Refuse(const char* param, const std::string& problem) {
  return BadRequest("'" + std::string(param) + "' " + problem, param);
}

Result<void> CheckTypes(json::Value reasoning, Wish& wish) {
  if (!wish.enabled.is_null() && !wish.enabled.is_bool()) {
    return Refuse("reasoning.enabled", "must be true or false.");
  }
  if (!wish.effort.is_null()) {
    TRY(CheckReasoningEffort(wish.effort, "reasoning.effort"));
  }
  if (!wish.max_tokens.is_null()) {
    wish.budget = wish.max_tokens.Integer().value_or(-1);
    if (wish.budget < 0) {
      return Refuse("reasoning.max_tokens", "must be a non-negative integer.");
    }
  }
  const json::Value exclude = reasoning.Find("exclude");
  if (!exclude.is_null() && !exclude.is_bool()) {
    return Refuse("reasoning.exclude", "must be true or false.");
  }
  return {};
}

// Checks that no two members contradict each other.
Result<void> CheckConflicts(const Wish& wish) {
  const bool by_effort = !wish.effort.is_null();
  const bool by_budget = !wish.max_tokens.is_null();
  const bool by_top = !wish.top_effort.is_null();
  if (by_effort && by_budget) {
    return Refuse("reasoning.max_tokens", "must not be sent with 'reasoning.effort'.");
  }
  if (by_budget && by_top) {
    return Refuse("reasoning.max_tokens", "must not be sent with 'reasoning_effort'.");
  }
  if (by_effort && by_top && wish.effort.string() != wish.top_effort.string()) {
    return Refuse("reasoning.effort", "differs from 'reasoning_effort'.");
  }
  if (wish.enabled.is_null()) return {};
  const bool on = wish.enabled.boolean();
  const auto contradicts = [on](json::Value effort) { return effort.StringEquals("none") == on; };
  if (by_effort && contradicts(wish.effort)) {
    return Refuse("reasoning.effort", "contradicts 'reasoning.enabled'.");
  }
  if (by_budget && (wish.budget == 0) == on) {
    return Refuse("reasoning.max_tokens", "contradicts 'reasoning.enabled'.");
  }
  if (by_top && contradicts(wish.top_effort)) {
    return Refuse("reasoning.enabled", "contradicts 'reasoning_effort'.");
  }
  return {};
}

const char* EffortOf(int64_t budget) {
  if (budget < kMediumFrom) return "low";
  return budget < kHighFrom ? "medium" : "high";
}

}  // namespace

void SetThinking(json::Value root, bool on, CanonicalRequest& request) {
  request.reasoning.set_thinking(on ? inference::v1::REASONING_SWITCH_ON
                                    : inference::v1::REASONING_SWITCH_OFF);
  request.reasoning.set_own_template_arguments(!root.Find("chat_template_kwargs").is_null());
}

Result<void> ReadReasoningControls(json::Value root, const ModelTraits& traits,
                                   CanonicalRequest& request) {
  const json::Value include = root.Find("include_reasoning");
  request.hides_reasoning = include.is_bool() && !include.boolean();
  const json::Value reasoning = root.Find("reasoning");
  if (reasoning.is_null()) return {};
  Wish wish{.enabled = reasoning.Find("enabled"),
            .effort = reasoning.Find("effort"),
            .max_tokens = reasoning.Find("max_tokens"),
            .top_effort = root.Find("reasoning_effort")};
  TRY(CheckTypes(reasoning, wish));
  TRY(CheckConflicts(wish));
  if (reasoning.Find("exclude").boolean()) request.hides_reasoning = true;
  const bool by_effort = !wish.effort.is_null();
  const bool by_budget = !wish.max_tokens.is_null();
  if (wish.enabled.is_null() && !by_effort && !by_budget) return {};
  bool on = true;
  if (!wish.enabled.is_null()) {
    on = wish.enabled.boolean();
  } else {
    on = by_effort ? !wish.effort.StringEquals("none") : wish.budget > 0;
  }
  SetThinking(root, on, request);
  if (by_effort) request.reasoning.set_effort(wish.effort.string());
  if (wish.budget > 0) {
    if (traits.bounds_reasoning) {
      request.reasoning_budget = wish.budget;
    } else {
      request.reasoning.set_effort(EffortOf(wish.budget));
    }
  }
  return {};
}

}  // namespace tollgate::gateway
