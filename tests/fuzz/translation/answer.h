// An engine's output, independent of its encoding: the reference for what callers must receive.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/random.h"

namespace tollgate::fuzz {

// What a surface can represent; the generator produces nothing else.
struct Abilities {
  bool chat = true;  // reasoning, refusals, tool calls; else plain completions
  int max_choices = 1;
};

enum class Kind { kReasoning, kText, kRefusal, kCall, kFinish };
enum class Finish { kStop, kLength, kFilter };

// The smallest unit of an engine's output.
struct Step {
  int choice = 0;
  Kind kind = Kind::kText;
  size_t call = 0;      // of a kCall: its index in the choice
  bool first = false;   // the call's first delta
  bool last = false;    // the call's last delta
  std::u16string text;  // a piece of text or arguments; may be empty in calls only
  bool logprob = false;
};

struct Call {
  std::u16string id;  // empty: the engine sends none
  std::u16string name;
  std::u16string arguments;  // the text of a JSON object, or empty
};

struct Choice {
  std::vector<Call> calls;
  bool refused = false;      // it has a refusal, and neither text nor calls
  bool interleaved = false;  // deltas of its calls are interleaved
  Finish finish = Finish::kStop;
  std::u16string stop_sequence;  // only with kStop and without calls
};

struct Answer {
  std::vector<Choice> choices;
  std::vector<Step> steps;  // in the order of the stream; each choice's last one is its kFinish
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t cache_write_tokens = 0;
};

Answer RandomAnswer(Random& random, const Abilities& abilities);

// The step produces at least a token.
inline bool IsToken(const Step& step) {
  return step.kind != Kind::kFinish && (!step.text.empty() || step.first);
}

}  // namespace tollgate::fuzz
