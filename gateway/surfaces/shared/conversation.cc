#include "gateway/surfaces/shared/conversation.h"

namespace tollgate::gateway {

namespace {

std::string Joined(const std::vector<std::string>& texts, std::string_view between) {
  std::string out;
  for (const std::string& text : texts) {
    if (!out.empty()) out += between;
    out += text;
  }
  return out;
}

}  // namespace

void ConversationWriter::Begin(Role role, bool join) {
  if (open_ && join && role_ == role) return;
  End();
  open_ = true;
  role_ = role;
}

void ConversationWriter::Text(std::string_view text) {
  Count(text);
  texts_.emplace_back(text);
  parts_.push_back("{\"type\":\"text\",\"text\":\"" + std::string(text) + "\"}");
}

void ConversationWriter::Image(std::string_view url, std::string_view detail) {
  ++size_.media_parts;
  media_ = true;
  std::string part = "{\"type\":\"image_url\",\"image_url\":{\"url\":\"" + std::string(url) + "\"";
  if (!detail.empty()) part += ",\"detail\":\"" + std::string(detail) + "\"";
  parts_.push_back(part + "}}");
}

void ConversationWriter::OtherMedium() { ++size_.media_parts; }

void ConversationWriter::Reasoning(std::string_view text) {
  Count(text);
  reasoning_ += text;
}

void ConversationWriter::ToolCall(std::string_view id, std::string_view name,
                                  std::string_view arguments) {
  Count(id);
  Count(name);
  Count(arguments);
  calls_ += calls_.empty() ? "" : ",";
  calls_ += "{\"id\":\"" + std::string(id) + "\",\"type\":\"function\",\"function\":{\"name\":\"" +
            std::string(name) + "\",\"arguments\":\"" + std::string(arguments) + "\"}}";
}

void ConversationWriter::ToolResult(std::string_view call_id, std::string_view text) {
  End();
  Count(call_id);
  Count(text);
  Add("{\"role\":\"tool\",\"tool_call_id\":\"" + std::string(call_id) + "\",\"content\":\"" +
      std::string(text) + "\"}");
}

void ConversationWriter::Add(std::string_view message) {
  ++size_.messages;
  out_ += out_.empty() ? "" : ",";
  out_ += message;
}

void ConversationWriter::End() {
  if (!open_) return;
  open_ = false;
  const bool something = !parts_.empty() || !reasoning_.empty() || !calls_.empty();
  std::string message;
  switch (role_) {
    case Role::kSystem:
      message = "{\"role\":\"system\",\"content\":\"" + Joined(texts_, "\\n\\n") + "\"}";
      break;
    case Role::kUser:
      message = "{\"role\":\"user\",\"content\":";
      message += media_ || texts_.size() > 1 ? "[" + Joined(parts_, ",") + "]"
                                             : "\"" + Joined(texts_, "") + "\"";
      message += "}";
      break;
    case Role::kAssistant:
      message = "{\"role\":\"assistant\",\"content\":";
      message += texts_.empty() && !calls_.empty() ? "null" : "\"" + Joined(texts_, "") + "\"";
      // Each engine reads one of the names (wire.md 2.4).
      if (!reasoning_.empty()) {
        message += ",\"reasoning_content\":\"" + reasoning_ + "\",\"reasoning\":\"" + reasoning_ +
                   "\"";
      }
      if (!calls_.empty()) message += ",\"tool_calls\":[" + calls_ + "]";
      message += "}";
      break;
  }
  if (something) Add(message);
  texts_.clear();
  parts_.clear();
  media_ = false;
  reasoning_.clear();
  calls_.clear();
}

std::string ConversationWriter::Take() {
  End();
  return "[" + std::move(out_) + "]";
}

}  // namespace tollgate::gateway
