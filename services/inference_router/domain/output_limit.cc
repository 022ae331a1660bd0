#include "services/inference_router/domain/output_limit.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "services/inference_router/domain/own_count.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::Delta;

bool HasOutput(const Delta& delta) {
  return !delta.content_json().empty() || !delta.reasoning_json().empty() ||
         !delta.refusal_json().empty() || delta.tool_calls_size() > 0;
}

void EndByLength(Delta& delta) {
  delta.clear_logprobs_json();  // has a token for each part of the whole text
  delta.clear_stop_sequence_json();
  delta.set_finish_reason(inference::v1::FINISH_REASON_LENGTH);
}

bool IsHighSurrogate(std::string_view escape) {
  return escape.starts_with("\\ud") &&
         std::string_view("89abAB").find(escape[3]) != std::string_view::npos;
}

// Length of the first character of a text given as the inside of a JSON string literal.
size_t FirstCharacter(std::string_view escaped) {
  constexpr size_t kEscape = 6;  // \uXXXX
  size_t size = 1;
  if (escaped.starts_with("\\u") || escaped.starts_with("\\U")) {
    size = IsHighSurrogate(escaped) && escaped.substr(kEscape).starts_with("\\u") ? 2 * kEscape
                                                                                  : kEscape;
  } else if (escaped[0] == '\\') {
    size = 2;
  } else {
    const auto is_continuation = [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    };
    while (size < escaped.size() && is_continuation(escaped[size])) ++size;
  }
  return std::min(size, escaped.size());
}

// Takes the bytes of the text from the budget and cuts what is above it.
void Cut(std::string& escaped, int64_t& bytes) {
  size_t end = 0;
  while (end < escaped.size()) {
    const std::string_view rest = std::string_view(escaped).substr(end);
    const size_t size = FirstCharacter(rest);
    const int64_t decoded = DecodedBytes(rest.substr(0, size));
    if (decoded > bytes) break;
    bytes -= decoded;
    end += size;
  }
  if (end < escaped.size()) bytes = 0;  // nothing follows a text that was cut
  escaped.resize(end);
}

int64_t BytesOf(const Delta& delta) {
  OwnCount count(1);
  count.Add(delta);
  return count.bytes();
}

void ShortenTo(int64_t bytes, Delta& delta) {
  Cut(*delta.mutable_reasoning_json(), bytes);
  Cut(*delta.mutable_content_json(), bytes);
  Cut(*delta.mutable_refusal_json(), bytes);
  int calls = 0;
  for (; calls < delta.tool_calls_size() && bytes > 0; ++calls) {
    bytes -= DecodedBytes(delta.tool_calls(calls).name_json());
    Cut(*delta.mutable_tool_calls(calls)->mutable_arguments_json(), bytes);
  }
  delta.mutable_tool_calls()->DeleteSubrange(calls, delta.tool_calls_size() - calls);
  EndByLength(delta);
}

}  // namespace

OutputLimit::OutputLimit(int64_t tokens, int choices)
    : tokens_(tokens), ended_(static_cast<size_t>(std::max(choices, 1))) {}

void OutputLimit::Apply(int64_t tokens_before, Delta& delta) {
  const auto choice = static_cast<size_t>(delta.choice());
  if (tokens_ <= 0 || choice >= ended_.size()) return;
  if (ended_[choice]) {
    delta.Clear();
    return;
  }
  const bool ends = delta.finish_reason() != inference::v1::FINISH_REASON_UNSPECIFIED;
  const bool beyond = !ends && tokens_before >= tokens_ && HasOutput(delta);
  ended_[choice] = ends || beyond;
  if (!beyond) return;
  exceeded_ = true;
  delta.Clear();
  delta.set_choice(static_cast<int32_t>(choice));
  EndByLength(delta);
}

void OutputLimit::Shorten(int64_t tokens, std::span<inference::v1::Event> answer) {
  int64_t bytes = 0;
  for (const auto& event : answer) bytes += BytesOf(event.delta());
  // All factors are far below 2^31: the bytes of an answer and its tokens are bounded (H75).
  for (auto& event : answer) {
    Delta& delta = *event.mutable_delta();
    const int64_t own_bytes = BytesOf(delta);
    const int64_t own_tokens = bytes > 0 ? tokens * own_bytes / bytes : 0;
    if (tokens_ <= 0 || own_tokens <= tokens_) continue;
    exceeded_ = true;
    ShortenTo(own_bytes * tokens_ / own_tokens, delta);
  }
}

bool OutputLimit::over() const {
  return exceeded_ && std::ranges::all_of(ended_, [](bool ended) { return ended; });
}

}  // namespace tollgate::inference_router
