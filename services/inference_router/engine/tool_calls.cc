#include "services/inference_router/engine/tool_calls.h"

#include <algorithm>

#include "common/base/id.h"

namespace tollgate::inference_router {

namespace {
// Limit on the calls of one choice.
constexpr size_t kMaxCalls = 256;
// Limit on the bytes of one call's arguments.
constexpr size_t kMaxArguments = 8 << 20;
// Limit on the bytes of a call's id, and on those of its name.
constexpr size_t kMaxName = 4096;
// Bytes charged for a call in addition to its texts, here and in an encoder.
constexpr size_t kCallBytes = 512;
// Bytes charged for a piece of another call than the last one, because an encoder that cannot
// interleave calls stores such pieces separately.
constexpr size_t kSwitchBytes = 64;

bool BeginsArguments(const json::Value& item) {
  const json::Value arguments = item.Find("function").Find("arguments");
  if (!arguments.is_string()) return arguments.is_object();
  const std::string text = arguments.string();
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && (text[begin] == '{' || text[begin] == '[');
}
}  // namespace

ToolCalls::Call* ToolCalls::Find(const json::Value& item, size_t position, bool named) {
  std::optional<int64_t> index;
  if (item.Find("index").is_number()) index = item.Find("index").Integer();
  const json::Value id = item.Find("id");
  const bool has_id = id.is_string() && !id.raw_string().empty();
  Call* found = nullptr;
  if (index) {
    for (auto call = calls_.rbegin(); call != calls_.rend() && !found; ++call) {
      if (call->engine_index == index) found = &*call;
    }
  } else if (!calls_.empty() && position == 0) {
    found = &calls_.back();
  }
  // A name with a used index or without an index starts a new call only if the arguments of the
  // earlier call are complete and the item has another id or arguments of its own: some engines
  // repeat the name, with a new id or none, in every delta.
  const bool another = found && found->sent && named && found->arguments.complete() &&
                       ((has_id && found->id != id.raw_string()) || BeginsArguments(item));
  if (found && !another) return found;
  if (calls_.size() >= kMaxCalls) return nullptr;
  calls_.emplace_back();
  calls_.back().engine_index = index;
  return &calls_.back();
}

bool ToolCalls::IsSent(const std::string& id) const {
  return std::ranges::any_of(calls_,
                             [&id](const Call& call) { return call.sent && call.sent_id == id; });
}

AnswerLimit ToolCalls::ReadOne(const json::Value& item, size_t position,
                               inference::v1::Delta& delta, ByteBudget& budget) {
  const json::Value function = item.Find("function");
  const json::Value name = function.is_object() ? function.Find("name") : json::Value();
  const bool named = name.is_string() && !name.raw_string().empty();
  const size_t before = calls_.size();
  Call* const found = Find(item, position, named);
  if (found == nullptr) return AnswerLimit::kToolCalls;
  Call& call = *found;
  const json::Value id = item.Find("id");
  const bool first_id = !call.sent && call.id.empty() && id.is_string();
  if (first_id && id.raw_string().size() > kMaxName) return AnswerLimit::kToolArguments;
  if (!call.sent && named && name.raw_string().size() > kMaxName) {
    return AnswerLimit::kToolArguments;
  }
  if (first_id) call.id = id.raw_string();

  std::string arguments;
  const json::Value value = function.is_object() ? function.Find("arguments") : json::Value();
  if (value.is_string()) {
    arguments = call.joiner.Join(value.raw_string());
  } else if (value.is_object()) {
    json::AppendEscaped(arguments, value.raw());
  }
  call.arguments.Add(arguments);
  const auto place = static_cast<size_t>(found - calls_.data());
  call.argument_bytes += arguments.size();
  if (call.argument_bytes > kMaxArguments) return AnswerLimit::kToolArguments;
  const size_t overhead =
      calls_.size() > before ? kCallBytes : (place != last_ ? kSwitchBytes : size_t{0});
  last_ = place;
  const size_t texts = arguments.size() + (first_id ? call.id.size() : 0) +
                       (!call.sent && named ? name.raw_string().size() : 0);
  if (!budget.Take(overhead + texts)) return AnswerLimit::kAnswerBytes;

  if (!call.sent && !named) {
    call.pending_arguments += arguments;
    return AnswerLimit::kNone;
  }
  if (call.sent && arguments.empty()) return AnswerLimit::kNone;
  inference::v1::ToolCallDelta& out = *delta.add_tool_calls();
  if (!call.sent) {
    call.sent_id = call.id.empty() || IsSent(call.id) ? "call_" + RandomBase62(24) : call.id;
    call.sent = any_ = true;
    call.index = next_index_++;
    out.set_id_json(call.sent_id);
    out.set_name_json(std::string(name.raw_string()));
    *out.mutable_arguments_json() = std::move(call.pending_arguments);
    call.pending_arguments.clear();
  }
  out.set_index(call.index);
  out.mutable_arguments_json()->append(arguments);
  return AnswerLimit::kNone;
}

AnswerLimit ToolCalls::Read(const json::Value& calls, inference::v1::Delta& delta,
                            ByteBudget& budget) {
  // Older versions of TGI send one call instead of a list.
  if (calls.is_object()) return ReadOne(calls, 0, delta, budget);
  size_t position = 0;
  for (json::Value item : calls) {
    if (item.is_object()) {
      const AnswerLimit limit = ReadOne(item, position, delta, budget);
      if (limit != AnswerLimit::kNone) return limit;
    }
    ++position;
  }
  return AnswerLimit::kNone;
}

}  // namespace tollgate::inference_router
