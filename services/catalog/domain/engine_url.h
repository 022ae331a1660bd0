// The address of an engine as the catalog writes it: http://host:port or https://host[:port],
// nothing after it.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::catalog {

// What is wrong with it, for people; empty when nothing is.
std::string EngineUrlProblem(std::string_view url);

}  // namespace tollgate::catalog
