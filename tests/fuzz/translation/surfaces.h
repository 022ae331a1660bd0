// The surfaces that are fuzzed: one row each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/pipeline/surface.h"
#include "tests/fuzz/translation/answer.h"
#include "tests/support/protocol/assembled.h"

namespace tollgate::fuzz {

struct Asked {
  int choices = 1;
  bool stream = true;
  bool include_usage = false;
  std::string stop;  // a stop string; empty: none
};

struct SurfaceRow {
  const char* name;
  const gateway::Surface& (*surface)();
  inference::v1::RequestKind kind;
  Abilities abilities;
  std::string (*request)(const Asked& asked);
  test::Checked (*check_stream)(std::string_view bytes, const Asked& asked);
  test::Checked (*check_body)(std::string_view body, const Asked& asked);
  // The protocol's finish reason of this choice.
  std::string (*finish)(const Choice& choice);
  // Answers are a sequence of blocks or items: interleaved output is buffered, and lost with an
  // error.
  bool blocks = false;
  // Arguments become objects; their text may change.
  bool arguments_are_objects = false;
  bool refusal_is_text = false;
  bool tells_stop_sequence = false;
  bool tells_logprobs = false;
  bool tells_usage_details = true;
  // Usage in every stream, requested or not.
  bool always_usage = false;
};

const std::vector<SurfaceRow>& SurfaceRows();

}  // namespace tollgate::fuzz
