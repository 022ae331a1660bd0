// Compares the engine's output with what callers received.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/translation/surfaces.h"
#include "tests/fuzz/translation/translate.h"

namespace tollgate::fuzz {

// One run of one surface: everything derived from the seed, and the result.
struct Run {
  Answer answer;
  EngineBytes engine;
  Asked asked;
  Generation generation;
  std::string stream;  // the public bytes
  std::string body;
};

// Violations, one line each; empty on success.
std::vector<std::string> Compare(const SurfaceRow& row, const Run& run);

}  // namespace tollgate::fuzz
