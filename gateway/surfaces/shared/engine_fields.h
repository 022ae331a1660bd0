// Request members that stand in no public format but mean something to engines: which of them a
// caller may set. Surfaces forward members that they do not know themselves (decisions.md 17), so
// all of them ask here.
#pragma once

#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

// The rule for a member that the surface's own table does not have; null: forwarded as it came.
const FieldRule* FindEngineRule(json::Value member);

// Whether a chat template may write this forwarded member into the prompt: its bytes then count as
// text of the prompt.
bool StandsInPrompt(json::Value member);

}  // namespace tollgate::gateway
