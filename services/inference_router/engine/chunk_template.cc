#include "services/inference_router/engine/chunk_template.h"

#include <algorithm>
#include <cstring>

namespace tollgate::inference_router {
namespace {

// Fewer digits than would overflow a count.
constexpr size_t kMaxDigits = 15;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The number of digits of the plain whole number at the start of the text; 0: none, or leading
// zeros.
size_t CountDigits(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && count <= kMaxDigits && IsDigit(text[count])) ++count;
  return count > kMaxDigits || (count > 1 && text[0] == '0') ? 0 : count;
}

bool IsPlainCount(const json::Value& value) {
  return value.is_number() && CountDigits(value.raw()) == value.raw().size();
}

}  // namespace

void ChunkTemplate::Learn(std::string_view data, const json::Value& text, const json::Value& usage,
                          const std::optional<EngineUsage>& counts) {
  slots_.clear();
  runs_.clear();
  literals_.clear();
  usage_ = counts;
  const auto add = [&](const json::Value& value, Kind kind) {
    if (!IsPlainCount(value)) return;
    slots_.push_back({value.offset(), value.offset() + value.raw().size(), kind});
  };
  slots_.push_back({text.offset() + 1, text.offset() + 1 + text.raw_string().size(), Kind::kText});
  if (usage.is_object() && counts) {
    add(usage.Find("prompt_tokens"), Kind::kPrompt);
    add(usage.Find("completion_tokens"), Kind::kCompletion);
    add(usage.Find("total_tokens"), Kind::kTotal);
    const json::Value prompt = usage.Find("prompt_tokens_details");
    if (prompt.is_object()) {
      add(prompt.Find("cached_tokens"), Kind::kCached);
      add(prompt.Find("cache_write_tokens"), Kind::kCacheWrite);
    }
    const json::Value completion = usage.Find("completion_tokens_details");
    if (completion.is_object()) add(completion.Find("reasoning_tokens"), Kind::kReasoning);
  }
  std::ranges::sort(slots_, {}, &Slot::begin);
  size_t at = 0;
  for (const Slot& slot : slots_) {
    runs_.push_back(slot.begin - at);
    literals_ += data.substr(at, slot.begin - at);
    at = slot.end;
  }
  literals_ += data.substr(at);
}

std::optional<ChunkTemplate::Values> ChunkTemplate::Match(std::string_view data) const {
  Values values{.usage = usage_};
  std::string_view literals = literals_;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const size_t run = runs_[i];
    if (data.size() < run || std::memcmp(data.data(), literals.data(), run) != 0) return {};
    data.remove_prefix(run);
    literals.remove_prefix(run);
    size_t length = 0;
    if (slots_[i].kind == Kind::kText) {
      length = json::PlainStringLength(data);
      // An empty text produces no delta.
      if (length == 0 || length == std::string_view::npos) return {};
      values.text = data.substr(0, length);
    } else {
      length = CountDigits(data);
      if (length == 0) return {};
      int64_t count = 0;
      for (const char digit : data.substr(0, length)) count = count * 10 + (digit - '0');
      Set(*values.usage, slots_[i].kind, count);
    }
    data.remove_prefix(length);
  }
  if (data != literals) return {};
  return values;
}

void ChunkTemplate::Set(EngineUsage& usage, Kind kind, int64_t count) {
  switch (kind) {
    case Kind::kPrompt:
      usage.prompt_tokens = count;
      break;
    case Kind::kCompletion:
      usage.completion_tokens = count;
      break;
    case Kind::kCached:
      usage.cached_tokens = count;
      break;
    case Kind::kCacheWrite:
      usage.cache_write_tokens = count;
      break;
    case Kind::kReasoning:
      usage.reasoning_tokens = count;
      break;
    case Kind::kText:
    case Kind::kTotal:
      break;
  }
}

}  // namespace tollgate::inference_router
