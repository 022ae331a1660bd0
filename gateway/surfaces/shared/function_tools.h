// Checks tool definitions and generates call ids, for all surfaces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

inline constexpr size_t kMaxTools = 1024;

// The list may be absent, or an array of at most kMaxTools objects. Fails with 400 naming "tools"
// otherwise.
Result<void> CheckToolList(json::Value tools);

// Checks the object with a function's name, description and parameters. `path` prefixes the
// message, for example "tools[3].function".
Result<void> CheckFunction(json::Value function, std::string_view path);

// Generates an id for a call for which the engine sent none. Returns the contents of a JSON string.
std::string MakeToolCallId();

// 400 that names tool_choice.
Fail<Error> BadToolChoice(std::string message);

}  // namespace tollgate::gateway
