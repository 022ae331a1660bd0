// The router's own count of an engine's output, against which the engine's usage is checked. It is
// an upper bound, not a tokenizer: docs/adr/0004-own-token-count.md.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// Length in UTF-8 bytes of a text, given as the inside of a JSON string literal.
int64_t DecodedBytes(std::string_view escaped);

class OwnCount {
 public:
  // Tokens without visible bytes: end of text, delimiters of reasoning and channels.
  static constexpr int64_t kTokensPerChoice = 32;
  // The delimiters around one tool call, which engines convert to JSON.
  static constexpr int64_t kTokensPerToolCall = 64;

  explicit OwnCount(int choices);

  void Add(const inference::v1::Delta& delta);

  // Deltas with text: the estimate if the engine reports no usage. Most engines send one delta per
  // token, so this is close to the real count and never above it.
  int64_t chunks() const { return chunks_; }
  int64_t bytes() const { return bytes_; }
  // The part of the bytes that is reasoning.
  int64_t reasoning_bytes() const { return reasoning_bytes_; }
  // Upper bound in tokens: a visible token has at least one byte.
  int64_t bound() const;

 private:
  int64_t chunks_ = 0;
  int64_t bytes_ = 0;
  int64_t reasoning_bytes_ = 0;
  int64_t tool_calls_ = 0;
  int64_t choices_;
};

}  // namespace tollgate::inference_router
