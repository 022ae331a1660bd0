// Stored limits of a key, its workspace and single models, and how a plan's limits fill the gaps.
// Pure. See docs/design/limits.md 7.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "services/auth/domain/rules.h"

namespace tollgate::auth {

using ModelLimits = std::map<std::string, LimitValues, std::less<>>;

// Limits of a key or of a workspace, or the defaults of a plan.
struct LimitSet {
  LimitValues key;
  LimitValues workspace;
  ModelLimits key_models;
  ModelLimits workspace_models;
};

bool IsNone(const LimitValues& limits);

// Text form: one line per entry with "key" or "workspace", the model or "*", then the three
// numbers. Model ids have no spaces. Unknown lines are skipped.
std::string FormatLimits(const LimitSet& limits);
LimitSet ParseLimits(std::string_view text);

// Checks that each entry is a valid model id with valid limits, and that there are at most 200.
Result<void> CheckModelLimits(const ModelLimits& limits, std::string_view field);
// A plan's id has the same form as a workspace's.
Result<void> CheckPlanId(std::string_view id);

// A limit and whether it comes from the plan.
struct Effective {
  LimitValues limits;
  bool of_plan = false;
};
// Own limits replace the plan's as a whole, separately for each model and for all models.
Effective Choose(const LimitValues& own, const LimitValues& plan);
std::map<std::string, Effective, std::less<>> Choose(const ModelLimits& own,
                                                     const ModelLimits& plan);

}  // namespace tollgate::auth
