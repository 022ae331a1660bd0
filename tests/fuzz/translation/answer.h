// What an engine says, before anybody has put it into bytes: the truth that callers must hear.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/random.h"

namespace tollgate::fuzz {

// What a surface lets through; the generator says nothing else.
struct Abilities {
  bool chat = true;  // reasoning, refusals, tool calls; else plain completions
  int max_choices = 1;
};

enum class Kind { kReasoning, kText, kRefusal, kCall, kFinish };
enum class Finish { kStop, kLength, kFilter };

// The smallest thing an engine says at once.
struct Step {
  int choice = 0;
  Kind kind = Kind::kText;
  size_t call = 0;      // of a kCall: which of the choice's
  bool first = false;   // the call's first
  bool last = false;    // the call's last
  std::u16string text;  // a piece of text or arguments; may be empty in calls only
  bool logprob = false;
};

struct Call {
  std::u16string id;  // empty: the engine gives none
  std::u16string name;
  std::u16string arguments;  // the text of a JSON object, or empty
};

struct Choice {
  std::vector<Call> calls;
  bool refused = false;      // it holds a refusal, and neither text nor calls
  bool interleaved = false;  // its calls' pieces are mixed
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
