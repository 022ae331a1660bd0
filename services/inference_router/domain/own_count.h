// The router's own count of what an engine produced, against which the engine's usage is checked.
// Why it is an upper bound and not a tokenizer: docs/adr/0004-own-token-count.md.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// Length in UTF-8 bytes of the text whose escaped form (inside of a JSON literal) this is.
int64_t DecodedBytes(std::string_view escaped);

class OwnCount {
 public:
  // Tokens that leave no byte: end of text, the marks around reasoning and channels.
  static constexpr int64_t kTokensPerChoice = 32;
  // The marks and names around one tool call, which engines turn into JSON of their own.
  static constexpr int64_t kTokensPerToolCall = 64;

  explicit OwnCount(int choices);

  void Add(const inference::v1::Delta& delta);

  // Deltas that carried text: the estimate when the engine gives no usage. Most engines send a
  // delta a token, so it is near, and never above, the truth.
  int64_t chunks() const { return chunks_; }
  int64_t bytes() const { return bytes_; }
  // No tokenizer can have made more tokens than this: a token that shows carries at least a byte.
  int64_t bound() const;

 private:
  int64_t chunks_ = 0;
  int64_t bytes_ = 0;
  int64_t tool_calls_ = 0;
  int64_t choices_;
};

}  // namespace tollgate::inference_router
