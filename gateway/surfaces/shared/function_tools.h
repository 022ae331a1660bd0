// What tool definitions and calls have in common wherever a surface keeps them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

inline constexpr size_t kMaxTools = 1024;

// Absent, or an array of at most kMaxTools objects. 400 naming "tools" otherwise.
Result<void> CheckToolList(json::Value tools);

// The object that holds a function's name, description and parameters. `where` is said in front,
// for example "tools[3].function".
Result<void> CheckFunction(json::Value function, std::string_view where);

// A call's id (inside of a JSON literal) for an engine that sent none.
std::string MakeToolCallId();

}  // namespace tollgate::gateway
