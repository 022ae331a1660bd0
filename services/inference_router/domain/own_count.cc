#include "services/inference_router/domain/own_count.h"

#include <algorithm>

#include "common/base/ascii.h"

namespace tollgate::inference_router {
namespace {

// UTF-8 bytes of one \uXXXX escape. Each half of a surrogate pair counts as two of the pair's four
// bytes.
int64_t BytesOfUnit(unsigned unit) {
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  return unit >= 0xD800 && unit < 0xE000 ? 2 : 3;
}

}  // namespace

int64_t DecodedBytes(std::string_view escaped) {
  int64_t bytes = 0;
  size_t at = 0;
  while (at < escaped.size()) {
    const size_t backslash = escaped.find('\\', at);
    if (backslash == std::string_view::npos)
      return bytes + static_cast<int64_t>(escaped.size() - at);
    bytes += static_cast<int64_t>(backslash - at);
    if (backslash + 5 < escaped.size() && escaped[backslash + 1] == 'u') {
      unsigned unit = 0;
      for (int i = 2; i < 6; ++i)
        unit = unit * 16 + static_cast<unsigned>(std::max(HexValue(escaped[backslash + i]), 0));
      bytes += BytesOfUnit(unit);
      at = backslash + 6;
    } else {
      bytes += 1;
      at = backslash + 2;
    }
  }
  return bytes;
}

OwnCount::OwnCount(int choices) : choices_(std::max(choices, 1)) {}

void OwnCount::Add(const inference::v1::Delta& delta) {
  const int64_t reasoning = DecodedBytes(delta.reasoning_json());
  int64_t bytes =
      DecodedBytes(delta.content_json()) + reasoning + DecodedBytes(delta.refusal_json());
  for (const inference::v1::ToolCallDelta& call : delta.tool_calls()) {
    if (!call.name_json().empty()) {
      ++tool_calls_;
      bytes += DecodedBytes(call.name_json());
    }
    bytes += DecodedBytes(call.arguments_json());
  }
  bytes_ += bytes;
  reasoning_bytes_ += reasoning;
  if (bytes > 0) ++chunks_;
}

int64_t OwnCount::bound() const {
  return bytes_ + choices_ * kTokensPerChoice + tool_calls_ * kTokensPerToolCall;
}

}  // namespace tollgate::inference_router
