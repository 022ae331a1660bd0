// All the ways in which an engine can garble one answer.
#pragma once

#include <string_view>
#include <vector>

#include "tests/support/json.h"

namespace tollgate::test {

// Part of every engine text that no caller may see.
inline constexpr std::string_view kEngineBody = "engine-body";
// The fault that is an engine's refusal of the request, which callers get as 400.
inline constexpr std::string_view kRefusal = "422";

// Scripts of the simulated engine (tests/support/README.md); "fault" is the name.
const std::vector<Json>& Garbles();

}  // namespace tollgate::test
