// Validates the base_url of an engine: http://host:port or https://host[:port], without a path.
#pragma once

#include <string>
#include <string_view>

namespace tollgate::catalog {

// A description of the first problem; empty when the URL is valid.
std::string EngineUrlProblem(std::string_view url);

}  // namespace tollgate::catalog
