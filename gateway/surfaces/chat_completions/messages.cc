#include "gateway/surfaces/chat_completions/messages.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/try.h"
#include "gateway/surfaces/shared/conversation.h"
#include "gateway/surfaces/shared/media_url.h"

namespace tollgate::gateway {

namespace {

Fail<Error> BadMessage(size_t index, std::string_view problem) {
  return BadRequest("messages[" + std::to_string(index) + "]" + std::string(problem), "messages");
}

// Replaces the bytes [offset, offset + length) of the document.
struct Edit {
  size_t offset;
  size_t length;
  std::string text;
};

// A message of the engine's request: one of the client's, or a user message that was added.
struct Item {
  json::Value message;  // absent: added
  std::string_view role;
  // Contents of folded messages, before and after its own content.
  std::vector<json::Value> before, after;
};

// Joins several contents: to one text if all are texts, else to parts.
std::string JoinContents(const std::vector<json::Value>& contents) {
  bool texts = true;
  for (const json::Value content : contents) texts = texts && content.is_string();
  std::string out;
  for (const json::Value content : contents) {
    const std::string_view inside = content.is_string()
                                        ? content.raw_string()
                                        : content.raw().substr(1, content.raw().size() - 2);
    if (content.is_string() ? inside.empty() : content.size() == 0) continue;
    if (!out.empty()) out += texts ? kBlankLine : std::string_view(",");
    if (!texts && content.is_string()) out += R"({"type":"text","text":")";
    out += inside;
    if (!texts && content.is_string()) out += "\"}";
  }
  return texts ? "\"" + out + "\"" : "[" + out + "]";
}

class ChatMessagesReader {
 public:
  ChatMessagesReader(const json::Document& document, json::Value messages,
                     bool keeps_system_messages)
      : document_(document), messages_(messages), keeps_system_messages_(keeps_system_messages) {}

  Result<ChatMessages> Read();

 private:
  Result<void> ReadMessage(size_t index, json::Value message);
  Result<void> ReadContent(size_t index, std::string_view role, json::Value content);
  Result<void> ReadPart(size_t index, json::Value part);
  Result<void> ReadToolCalls(size_t index, json::Value calls);
  // Copies the reasoning of an assistant turn to the other name of the member.
  void MirrorReasoning(json::Value message, json::Value from, std::string_view to_name);
  // Adds the message as an item of its own, or folds it into another one.
  void Place(json::Value message, std::string_view role);
  // Writes pending folded messages before an item of this role.
  void PlaceFolded(std::string_view role);
  // Whether the message is folded.
  bool IsFolded(std::string_view role) const {
    return role == "system" && !keeps_system_messages_ && !items_.empty();
  }
  std::string Rewrite();
  // Appends bytes [begin, end) of the document with the edits applied.
  void AppendEdited(size_t begin, size_t end, std::string& out) const;
  void AppendItem(const Item& item, std::string& out) const;

  const json::Document& document_;
  json::Value messages_;
  const bool keeps_system_messages_;
  std::vector<Item> items_;
  std::vector<json::Value> folded_;  // contents that wait for an item
  bool any_folded_ = false;
  PromptSize size_;
  std::set<std::string> media_hosts_;
  std::vector<Edit> edits_;
};

Result<ChatMessages> ChatMessagesReader::Read() {
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
  PlaceFolded({});
  size_.messages = static_cast<int64_t>(items_.size());
  return ChatMessages{Rewrite(), size_, std::move(media_hosts_)};
}

Result<void> ChatMessagesReader::ReadMessage(size_t index, json::Value message) {
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
    role = "system";
    edits_.push_back({role_value.offset(), role_value.raw().size(), "\"system\""});
  }
  TRY(ReadContent(index, role, message.Find("content")));
  const bool folded = IsFolded(role);
  for (const json::Value member : message) {
    if (member.is_null() || member.KeyEquals("role") || member.KeyEquals("content")) continue;
    // The engine gets only the content of a folded message.
    if (!folded) size_.text_bytes += static_cast<int64_t>(member.raw().size());
    if ((member.KeyEquals("name") || member.KeyEquals("tool_call_id")) && !member.is_string()) {
      return BadMessage(index, "." + member.key() + " must be a string.");
    }
    if (member.KeyEquals("tool_calls")) {
      TRY(ReadToolCalls(index, member));
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
  Place(message, role);
  return {};
}

void ChatMessagesReader::Place(json::Value message, std::string_view role) {
  if (IsFolded(role)) {
    any_folded_ = true;
    size_.text_bytes += static_cast<int64_t>(kBlankLine.size());
    const bool leads = items_.size() == 1 && items_[0].role == "system";
    (leads ? items_[0].after : folded_).push_back(message.Find("content"));
    return;
  }
  // No message may come between calls and their results.
  if (role != "tool" && role != "function") PlaceFolded(role);
  Item item{.message = message, .role = role, .before = {}, .after = {}};
  if (role == "user") item.before = std::exchange(folded_, {});
  items_.push_back(std::move(item));
}

void ChatMessagesReader::PlaceFolded(std::string_view role) {
  if (folded_.empty() || role == "user") return;
  if (items_.back().role != "user") {
    items_.push_back(Item{.message = {}, .role = "user", .before = {}, .after = {}});
  }
  std::vector<json::Value>& after = items_.back().after;
  after.insert(after.end(), folded_.begin(), folded_.end());
  folded_.clear();
}

void ChatMessagesReader::MirrorReasoning(json::Value message, json::Value from,
                                         std::string_view to_name) {
  if (const json::Value null = message.Find(to_name)) {
    edits_.push_back({null.offset(), null.raw().size(), std::string(from.raw())});
    return;
  }
  edits_.push_back({from.offset() + from.raw().size(), 0,
                    "," + json::Quoted(to_name) + ":" + std::string(from.raw())});
}

Result<void> ChatMessagesReader::ReadContent(size_t index, std::string_view role,
                                             json::Value content) {
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
    TRY(ReadPart(index, part));
  }
  return {};
}

Result<void> ChatMessagesReader::ReadPart(size_t index, json::Value part) {
  if (!part.is_object()) return BadMessage(index, ".content parts must be objects.");
  const json::Value type = part.Find("type");
  // Engines guess a missing type, which could bypass the capability check.
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

Result<void> ChatMessagesReader::ReadToolCalls(size_t index, json::Value calls) {
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

void ChatMessagesReader::AppendEdited(size_t begin, size_t end, std::string& out) const {
  const std::string_view text = document_.text();
  auto edit = std::lower_bound(edits_.begin(), edits_.end(), begin,
                               [](const Edit& e, size_t offset) { return e.offset < offset; });
  size_t at = begin;
  for (; edit != edits_.end() && edit->offset < end; ++edit) {
    out += text.substr(at, edit->offset - at);
    out += edit->text;
    at = edit->offset + edit->length;
  }
  out += text.substr(at, end - at);
}

void ChatMessagesReader::AppendItem(const Item& item, std::string& out) const {
  const size_t begin = item.message.offset();
  const size_t end = begin + item.message.raw().size();
  if (item.before.empty() && item.after.empty()) return AppendEdited(begin, end, out);
  std::vector<json::Value> contents = item.before;
  const json::Value own = item.message.Find("content");
  if (own) contents.push_back(own);
  contents.insert(contents.end(), item.after.begin(), item.after.end());
  if (own) AppendEdited(begin, own.offset(), out);
  if (!own) out += R"({"role":"user","content":)";
  out += JoinContents(contents);
  if (own) AppendEdited(own.offset() + own.raw().size(), end, out);
  if (!own) out += "}";
}

std::string ChatMessagesReader::Rewrite() {
  if (edits_.empty() && !any_folded_) return {};
  // The edits of one message may be out of order, because its members may have any order.
  std::sort(edits_.begin(), edits_.end(),
            [](const Edit& a, const Edit& b) { return a.offset < b.offset; });
  const size_t begin = messages_.offset();
  std::string out;
  out.reserve(messages_.raw().size() + 64 * edits_.size());
  if (!any_folded_) {
    AppendEdited(begin, begin + messages_.raw().size(), out);
    return out;
  }
  out += "[";
  for (const Item& item : items_) {
    if (out.size() > 1) out += ",";
    AppendItem(item, out);
  }
  out += "]";
  return out;
}

}  // namespace

Result<ChatMessages> ReadChatMessages(const json::Document& document, json::Value messages,
                                      bool keeps_system_messages) {
  return ChatMessagesReader(document, messages, keeps_system_messages).Read();
}

}  // namespace tollgate::gateway
