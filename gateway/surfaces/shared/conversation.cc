#include "gateway/surfaces/shared/conversation.h"

#include "gateway/surfaces/shared/media_url.h"

namespace tollgate::gateway {

void ConversationWriter::Open(Role role) {
  End();
  open_ = true;
  role_ = role;
  if (role != Role::kSystem) has_turn_ = true;
}

void ConversationWriter::Begin(Role role, bool join) {
  in_late_system_ = role == Role::kSystem && has_turn_ && !keeps_system_messages_;
  if (in_late_system_ || Fold(role, join)) return;
  if (open_ && join && role_ == role) return;
  Open(role);
}

bool ConversationWriter::Fold(Role role, bool join) {
  if (late_.empty()) return false;
  const bool after_user = open_ && role_ == Role::kUser && !parts_.empty();
  if (!after_user || (role == Role::kUser && !join)) Open(Role::kUser);
  FoldIntoOpen();
  return role == Role::kUser;
}

void ConversationWriter::FoldIntoOpen() {
  for (std::string& text : late_) parts_.push_back({true, std::move(text)});
  late_.clear();
}

void ConversationWriter::Text(std::string_view text) {
  if (in_late_system_) {
    Count(kBlankLine);
    Count(text);
    late_.emplace_back(text);
    return;
  }
  // The separator is counted no matter whether it is written here or by the chat template.
  if (!parts_.empty()) Count(kBlankLine);
  Count(text);
  parts_.push_back({true, std::string(text)});
}

void ConversationWriter::Image(std::string_view url, std::string_view detail) {
  ++size_.media_parts;
  if (auto parsed = ParseMediaUrl(url); parsed && !parsed->host.empty()) {
    media_hosts_.insert(std::move(parsed->host));
  }
  std::string part = R"({"type":"image_url","image_url":{"url":")";
  part += url;
  if (!detail.empty()) {
    part += R"(","detail":")";
    part += detail;
  }
  part += "\"}}";
  parts_.push_back({false, std::move(part)});
}

void ConversationWriter::Reasoning(std::string_view text) {
  Count(text);
  reasoning_ += text;
}

void ConversationWriter::ToolCall(std::string_view id, std::string_view name,
                                  std::string_view arguments) {
  if (!calls_.empty()) calls_ += ",";
  const size_t begin = calls_.size();
  calls_ += R"({"id":")";
  calls_ += id;
  calls_ += R"(","type":"function","function":{"name":")";
  calls_ += name;
  calls_ += R"(","arguments":")";
  calls_ += arguments;
  calls_ += "\"}}";
  // Counts the whole call because chat templates add markup around each call.
  Count(std::string_view(calls_).substr(begin));
}

void ConversationWriter::ToolResult(std::string_view call_id, std::string_view text) {
  in_late_system_ = false;
  has_turn_ = true;
  End();
  Count(call_id);
  Count(text);
  BeginMessage();
  out_ += R"({"role":"tool","tool_call_id":")";
  out_ += call_id;
  out_ += R"(","content":")";
  out_ += text;
  out_ += "\"}";
}

void ConversationWriter::BeginMessage() {
  if (size_.messages > 0) out_ += ",";
  ++size_.messages;
}

void ConversationWriter::AppendTexts(std::string_view separator) {
  bool first = true;
  for (const Part& part : parts_) {
    if (!part.is_text) continue;
    if (!first) out_ += separator;
    first = false;
    out_ += part.json;
  }
}

void ConversationWriter::AppendUserContent() {
  if (parts_.size() == 1 && parts_[0].is_text) {
    out_ += "\"";
    AppendTexts({});
    out_ += "\"";
    return;
  }
  char separator = '[';
  for (const Part& part : parts_) {
    out_ += separator;
    separator = ',';
    if (part.is_text) out_ += R"({"type":"text","text":")";
    out_ += part.json;
    if (part.is_text) out_ += "\"}";
  }
  out_ += "]";
}

void ConversationWriter::AppendAssistant() {
  if (parts_.empty() && !calls_.empty()) {
    out_ += "null";
  } else {
    out_ += "\"";
    AppendTexts({});
    out_ += "\"";
  }
  // Some engines read one name, some the other (docs/design/wire.md 2.4).
  if (!reasoning_.empty()) {
    out_ += R"(,"reasoning_content":")";
    out_ += reasoning_;
    out_ += R"(","reasoning":")";
    out_ += reasoning_;
    out_ += "\"";
  }
  if (!calls_.empty()) {
    out_ += R"(,"tool_calls":[)";
    out_ += calls_;
    out_ += "]";
  }
}

void ConversationWriter::End() {
  if (!open_) return;
  open_ = false;
  if (parts_.empty() && reasoning_.empty() && calls_.empty()) return;
  BeginMessage();
  switch (role_) {
    case Role::kSystem:
      out_ += R"({"role":"system","content":")";
      AppendTexts(kBlankLine);
      out_ += "\"";
      break;
    case Role::kUser:
      out_ += R"({"role":"user","content":)";
      AppendUserContent();
      break;
    case Role::kAssistant:
      out_ += R"({"role":"assistant","content":)";
      AppendAssistant();
      break;
  }
  out_ += "}";
  parts_.clear();
  reasoning_.clear();
  calls_.clear();
}

std::string ConversationWriter::Take() {
  Fold(Role::kAssistant, false);
  End();
  std::string array = "[";
  array += out_;
  array += "]";
  out_.clear();
  return array;
}

}  // namespace tollgate::gateway
