#include "gateway/surfaces/chat_completions/messages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gateway/surfaces/shared/media_url.h"

namespace tollgate::gateway {

namespace {

constexpr size_t kMaxMessages = 10'000;

Fail<Error> BadMessage(size_t index, std::string_view problem) {
  return BadRequest("messages[" + std::to_string(index) + "]" + std::string(problem), "messages");
}

// Bytes [offset, offset + length) of the document are replaced by text.
struct Edit {
  size_t offset;
  size_t length;
  std::string text;
};

class Reader {
 public:
  Reader(const json::Document& document, json::Value messages)
      : document_(document), messages_(messages) {}

  Result<ChatMessages> Read();

 private:
  Result<void> ReadMessage(size_t index, json::Value message);
  Result<void> ReadContent(size_t index, std::string_view role, json::Value content);
  Result<void> ReadPart(size_t index, json::Value part);
  Result<void> ReadToolCalls(size_t index, json::Value calls);
  // Copies the reasoning of an assistant turn to its other name.
  void MirrorReasoning(json::Value message, json::Value from, std::string_view to_name);
  std::string ApplyEdits() const;

  const json::Document& document_;
  json::Value messages_;
  PromptSize size_;
  std::set<std::string> media_hosts_;
  std::vector<Edit> edits_;
};

Result<ChatMessages> Reader::Read() {
  if (!messages_.is_array() || messages_.size() == 0) {
    return BadRequest("'messages' must be a non-empty array.", "messages");
  }
  if (messages_.size() > kMaxMessages) {
    return BadRequest("'messages' may hold at most " + std::to_string(kMaxMessages) + " items.",
                      "messages");
  }
  size_t index = 0;
  for (const json::Value message : messages_) {
    if (auto read = ReadMessage(index++, message); !read) return tollgate::Fail{read.error()};
  }
  size_.messages = static_cast<int64_t>(messages_.size());
  return ChatMessages{ApplyEdits(), size_, std::move(media_hosts_)};
}

Result<void> Reader::ReadMessage(size_t index, json::Value message) {
  if (!message.is_object()) return BadMessage(index, " must be an object.");
  static constexpr std::string_view kRoles[] = {"system",    "developer", "user",
                                                "assistant", "tool",      "function"};
  const json::Value role_value = message.Find("role");
  std::string_view role;
  for (const std::string_view known : kRoles) {
    if (role_value.StringEquals(known)) role = known;
  }
  if (role.empty()) {
    return BadMessage(index, ".role must be system, developer, user, assistant or tool.");
  }
  if (role == "developer") {
    edits_.push_back({role_value.offset(), role_value.raw().size(), "\"system\""});
  }
  if (auto content = ReadContent(index, role, message.Find("content")); !content) return content;
  for (const json::Value member : message) {
    if (member.is_null() || member.KeyEquals("role") || member.KeyEquals("content")) continue;
    size_.text_bytes += static_cast<int64_t>(member.raw().size());
    if ((member.KeyEquals("name") || member.KeyEquals("tool_call_id")) && !member.is_string()) {
      return BadMessage(index, "." + member.key() + " must be a string.");
    }
    if (member.KeyEquals("tool_calls")) {
      if (auto calls = ReadToolCalls(index, member); !calls) return calls;
    }
  }
  if (role == "assistant") {
    const json::Value openai = message.Find("reasoning_content");
    const json::Value vllm = message.Find("reasoning");
    if (openai.is_string() && vllm.is_null()) {
      MirrorReasoning(message, openai, "reasoning");
    } else if (vllm.is_string() && openai.is_null()) {
      MirrorReasoning(message, vllm, "reasoning_content");
    }
  }
  return {};
}

void Reader::MirrorReasoning(json::Value message, json::Value from, std::string_view to_name) {
  if (const json::Value null = message.Find(to_name)) {
    edits_.push_back({null.offset(), null.raw().size(), std::string(from.raw())});
    return;
  }
  edits_.push_back({from.offset() + from.raw().size(), 0,
                    "," + json::Quoted(to_name) + ":" + std::string(from.raw())});
}

Result<void> Reader::ReadContent(size_t index, std::string_view role, json::Value content) {
  if (content.is_string()) {
    size_.text_bytes += static_cast<int64_t>(content.raw_string().size());
    return {};
  }
  if (content.is_null()) {
    if (role == "assistant" || role == "function") return {};
    return BadMessage(index, ".content is required.");
  }
  if (!content.is_array())
    return BadMessage(index, ".content must be a string or an array of parts.");
  for (const json::Value part : content) {
    if (auto read = ReadPart(index, part); !read) return read;
  }
  return {};
}

Result<void> Reader::ReadPart(size_t index, json::Value part) {
  if (!part.is_object()) return BadMessage(index, ".content parts must be objects.");
  const json::Value type = part.Find("type");
  // Engines guess a missing type, which would bypass the capability check.
  if (!type.is_string()) return BadMessage(index, ".content parts must have a string 'type'.");
  if (type.StringEquals("text") || type.StringEquals("refusal") || type.StringEquals("thinking")) {
    const json::Value text = part.Find(type.string());
    if (!text.is_string()) {
      return BadMessage(index, ".content parts of type '" + type.string() +
                                   "' must have a string '" + type.string() + "'.");
    }
    size_.text_bytes += static_cast<int64_t>(text.raw_string().size());
    // A part of type text that also has an image or audio counts as media.
    if (!HasMediaMember(part)) return {};
  }
  ++size_.media_parts;
  const std::string problem = CheckMediaPart(part, media_hosts_);
  return problem.empty() ? Result<void>() : BadMessage(index, ".content: a part" + problem);
}

Result<void> Reader::ReadToolCalls(size_t index, json::Value calls) {
  if (!calls.is_array()) return BadMessage(index, ".tool_calls must be an array.");
  for (const json::Value call : calls) {
    const json::Value function = call.Find("function");
    if (!call.is_object() || !function.is_object() || !function.Find("name").is_string()) {
      return BadMessage(index, ".tool_calls items must be functions with a name.");
    }
    const json::Value arguments = function.Find("arguments");
    if (!arguments.is_null() && !arguments.is_string()) {
      return BadMessage(index, ".tool_calls arguments must be a string.");
    }
  }
  return {};
}

std::string Reader::ApplyEdits() const {
  if (edits_.empty()) return {};
  const std::string_view text = document_.text();
  size_t at = messages_.offset();
  const size_t end = at + messages_.raw().size();
  std::string out;
  out.reserve(messages_.raw().size() + 64 * edits_.size());
  // Edits of one message may be out of order, as its members may have any order.
  std::vector<const Edit*> order;
  for (const Edit& edit : edits_) order.push_back(&edit);
  std::sort(order.begin(), order.end(),
            [](const Edit* a, const Edit* b) { return a->offset < b->offset; });
  for (const Edit* edit : order) {
    out += text.substr(at, edit->offset - at);
    out += edit->text;
    at = edit->offset + edit->length;
  }
  out += text.substr(at, end - at);
  return out;
}

}  // namespace

Result<ChatMessages> ReadChatMessages(const json::Document& document, json::Value messages) {
  return Reader(document, messages).Read();
}

}  // namespace tollgate::gateway
