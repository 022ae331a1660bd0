// Puts an answer into the bytes of some engine's dialect, and breaks them if chance wants it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/translation/answer.h"

namespace tollgate::fuzz {

// Stands in everything that callers must never see: engines' extras and error texts.
inline constexpr char kSecret[] = "ENGINE-SECRET";

enum class Breakage {
  kNone,
  kErrorEvent,  // an error in the stream
  kAbort,       // finish_reason "abort" or "error"
  kGarbage,     // an event that is not JSON
  kCut,         // the connection ends at some byte
};

enum class UsageHabit { kNever, kLast, kTwice, kWithFinish, kEveryChunk, kFirst };

struct EngineBytes {
  bool whole = false;  // one JSON body instead of a stream
  std::string bytes;
  // For each complete event, where its bytes end: an event counts when all before here has come.
  struct Event {
    size_t end = 0;
    size_t steps = 0;     // how many of the answer's steps have been said with it
    bool marker = false;  // [DONE]
  };
  std::vector<Event> events;
  Breakage breakage = Breakage::kNone;
  UsageHabit usage = UsageHabit::kNever;
  bool usage_per_choice = false;
  // What the last usage object said, if any was sent.
  std::optional<int64_t> completion_tokens;
  int64_t reasoning_tokens = 0;
  // Calls whose id the engine does not give: any will do.
  bool ids_are_made_up = false;
};

EngineBytes RandomEngineBytes(Random& random, const Answer& answer, const Abilities& abilities);

}  // namespace tollgate::fuzz
