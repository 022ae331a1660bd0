// What a client assembles from an answer of any public protocol, and the rules that its bytes
// broke. Each checker has its own readers (no product code), so that a rule is not checked by its
// own implementation.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/json.h"
#include "tests/support/protocol/public_stream.h"

namespace tollgate::test {

struct AssembledCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text
  friend bool operator==(const AssembledCall&, const AssembledCall&) = default;
};

// All texts are decoded UTF-8; a lone surrogate counts as U+FFFD.
struct AssembledChoice {
  std::string text;
  std::string reasoning;
  std::string refusal;
  std::vector<AssembledCall> calls;
  // Term of the protocol: finish_reason, stop_reason, or for responses "completed",
  // "max_output_tokens" or "content_filter".
  std::string finish;
  std::string stop_sequence;
  std::vector<std::string> logprob_tokens;
  friend bool operator==(const AssembledChoice&, const AssembledChoice&) = default;
};

// Counted as in chat: the whole prompt, including cached parts.
struct AssembledUsage {
  int64_t prompt = 0;
  int64_t completion = 0;
  int64_t cached = 0;
  int64_t cache_write = 0;
  int64_t reasoning = 0;
  friend bool operator==(const AssembledUsage&, const AssembledUsage&) = default;
  // When no engine reports reasoning tokens, both counts are estimates: by the shares of the bytes,
  // and by the deltas (ADR 0004). Everything else must be equal.
  bool SameButForEstimates(AssembledUsage other) const {
    if (other.reasoning - reasoning > 2 || reasoning - other.reasoning > 2) return false;
    other.reasoning = reasoning;
    return other == *this;
  }
};

enum class Ending {
  kNone,   // no terminal event, which is never legal
  kWell,   // the protocol's terminal event
  kError,  // an error in the stream
};

struct Checked {
  std::string id;
  std::string model;
  std::vector<AssembledChoice> choices;
  std::optional<AssembledUsage> usage;
  Ending ending = Ending::kNone;
  std::string error_code;
  // "event 3: what is wrong", in order; empty when all rules hold.
  std::vector<std::string> violations;
};

// Collects violations with their position.
class Findings {
 public:
  explicit Findings(std::vector<std::string>& violations) : violations_(violations) {}
  void At(size_t event) { event_ = event; }
  // Returns the condition.
  bool Expect(bool holds, std::string_view rule);
  // The value has exactly the keys in `required`, and any of `optional`.
  bool Keys(const Json& object, std::string_view what,
            const std::vector<std::string_view>& required,
            const std::vector<std::string_view>& optional = {});
  bool NonEmptyString(const Json& value, std::string_view what);
  bool String(const Json& value, std::string_view what);
  // An integer written as one, of at least `low`.
  bool Integer(const Json& value, std::string_view what, int64_t low = 0);

 private:
  std::vector<std::string>& violations_;
  size_t event_ = 0;
};

// Reads a stream's framing and iterates over its events, with their position for violations.
void ForEachEvent(std::string_view bytes, Checked& checked, Findings& find,
                  const std::function<void(const PublicEvent&)>& event);

// The four members common to every chunk and to the body of chat and completions.
class ChunkStamp {
 public:
  void Check(const Json& answer, std::string_view object, std::string_view id_prefix,
             Checked& checked, Findings& find);

 private:
  std::string first_;  // id, created and model
};

bool IsInteger(const Json& value);
bool OneOf(std::string_view text, const std::vector<std::string_view>& allowed);
// The chat family's usage object (docs/design/wire.md 2.5).
AssembledUsage CheckChatUsage(const Json& usage, Findings& find);
// The OpenAI family's error object, as the last event of a stream (docs/design/wire.md 1.1).
// Returns its code.
std::string CheckOpenAiError(const Json& event, Findings& find);

}  // namespace tollgate::test
