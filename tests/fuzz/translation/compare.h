// What the engine said against what callers got.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/translation/surfaces.h"
#include "tests/fuzz/translation/translate.h"

namespace tollgate::fuzz {

// One run of one surface: everything that was decided by the seed, and what came of it.
struct Run {
  Answer answer;
  EngineBytes engine;
  Asked asked;
  Generation generation;
  std::string stream;  // the public bytes
  std::string body;
};

// What does not hold, one line each; empty when all is well.
std::vector<std::string> Compare(const SurfaceRow& row, const Run& run);

}  // namespace tollgate::fuzz
