// Encodes an answer in the dialect of an engine, with random breakage.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/translation/answer.h"

namespace tollgate::fuzz {

// Part of everything that callers must never see: engines' extras and error texts.
inline constexpr char kSecret[] = "ENGINE-SECRET";

enum class Breakage {
  kNone,
  kErrorEvent,  // an error in the stream
  kAbort,       // finish_reason "abort" or "error"
  kGarbage,     // an event that is not JSON
  kCut,         // the connection is closed at a random byte
};

enum class UsageHabit { kNever, kLast, kTwice, kWithFinish, kEveryChunk, kFirst };

struct EngineBytes {
  bool whole = false;  // one JSON body instead of a stream
  std::string bytes;
  // For each complete event, the offset of its end.
  struct Event {
    size_t end = 0;
    size_t steps = 0;     // the answer's steps up to and with this event
    bool marker = false;  // [DONE]
  };
  std::vector<Event> events;
  Breakage breakage = Breakage::kNone;
  UsageHabit usage = UsageHabit::kNever;
  bool usage_per_choice = false;
  // The last usage object, if any was sent.
  std::optional<int64_t> completion_tokens;
  int64_t reasoning_tokens = 0;
  // Calls without an id of the engine: any id is accepted.
  bool ids_are_made_up = false;
};

EngineBytes RandomEngineBytes(Random& random, const Answer& answer, const Abilities& abilities);

}  // namespace tollgate::fuzz
