#include "services/auth/domain/limit_set.h"

#include <sstream>

#include "common/base/try.h"
#include "common/base/workspace_id.h"

namespace tollgate::auth {
namespace {

constexpr size_t kMaxModels = 200;
constexpr std::string_view kAllModels = "*";

void Append(std::string_view who, std::string_view model, const LimitValues& limits,
            std::string& out) {
  if (IsNone(limits)) return;
  out.append(who).append(" ").append(model);
  for (const int64_t value :
       {limits.requests_per_minute, limits.tokens_per_minute, limits.concurrent_requests}) {
    out.append(" ").append(std::to_string(value));
  }
  out.append("\n");
}

}  // namespace

bool IsNone(const LimitValues& limits) {
  return limits.requests_per_minute == 0 && limits.tokens_per_minute == 0 &&
         limits.concurrent_requests == 0;
}

std::string FormatLimits(const LimitSet& limits) {
  std::string text;
  Append("key", kAllModels, limits.key, text);
  Append("workspace", kAllModels, limits.workspace, text);
  for (const auto& [model, values] : limits.key_models) Append("key", model, values, text);
  for (const auto& [model, values] : limits.workspace_models) {
    Append("workspace", model, values, text);
  }
  return text;
}

LimitSet ParseLimits(std::string_view text) {
  LimitSet limits;
  std::istringstream lines{std::string(text)};
  std::string who, model;
  LimitValues values;
  while (lines >> who >> model >> values.requests_per_minute >> values.tokens_per_minute >>
         values.concurrent_requests) {
    const bool key = who == "key";
    if (!key && who != "workspace") continue;
    if (model == kAllModels) {
      (key ? limits.key : limits.workspace) = values;
    } else {
      (key ? limits.key_models : limits.workspace_models)[model] = values;
    }
  }
  return limits;
}

Result<void> CheckModelLimits(const ModelLimits& limits, std::string_view field) {
  if (limits.size() > kMaxModels) {
    return BadRequest("Limits may be set for at most 200 models.", std::string(field));
  }
  for (const auto& [model, values] : limits) {
    // Exact ids only. Requests look up the id of their model, so "<namespace>/*", which
    // allowed_models accepts, would limit nothing.
    if (model.ends_with("/*") || !CheckAllowedModels({model})) {
      return BadRequest("\"" + model + "\" is not a model id of the form <namespace>/<model>.",
                        std::string(field));
    }
    TRY(CheckLimits(values));
  }
  return {};
}

Result<void> CheckPlanId(std::string_view id) {
  if (IsWorkspaceId(id)) return {};
  return BadRequest("A plan is named by 1 to 63 lower-case letters, digits and inner hyphens.",
                    "name");
}

Effective Choose(const LimitValues& own, const LimitValues& plan) {
  if (!IsNone(own)) return {own, false};
  return {plan, true};
}

std::map<std::string, Effective, std::less<>> Choose(const ModelLimits& own,
                                                     const ModelLimits& plan) {
  std::map<std::string, Effective, std::less<>> chosen;
  for (const auto& [model, values] : plan) chosen[model] = {values, true};
  for (const auto& [model, values] : own) chosen[model] = {values, false};
  return chosen;
}

}  // namespace tollgate::auth
