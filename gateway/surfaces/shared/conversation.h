// Writes the `messages` of an engine request for the surfaces whose own form is another: texts are
// spliced in as the escaped bytes that came, and counted on the way (reliability.md 1.4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

// All texts are insides of JSON literals.
class ConversationWriter {
 public:
  enum class Role : uint8_t { kSystem, kUser, kAssistant };

  // Begins a message of that role; one that holds nothing at the end is not written. With `join` a
  // message of the same role that is still open goes on instead.
  void Begin(Role role, bool join = false);
  // Parts of the open message. System texts are joined by a blank line and an assistant's are put
  // one behind the other; a user's stay parts when there are several.
  void Text(std::string_view text);
  // An image_url part of a user's message; detail may be empty. Counts as a media part.
  void Image(std::string_view url, std::string_view detail = {});
  // Of an assistant's message.
  void Reasoning(std::string_view text);
  void ToolCall(std::string_view id, std::string_view name, std::string_view arguments);
  // A message of role tool; ends the open one.
  void ToolResult(std::string_view call_id, std::string_view text);

  // Ends the open message.
  void End();
  bool empty() const { return size_.messages == 0; }
  // The JSON array. Ends the open message.
  std::string Take();
  // After Take. Texts that engines see twice count once.
  const PromptSize& size() const { return size_; }

 private:
  struct Part {
    bool is_text;
    std::string json;  // inside of a text's literal; of a medium, the whole part
  };

  void BeginMessage();
  // The open message's texts, as the inside of one literal.
  void AppendTexts(std::string_view between);
  void AppendUserContent();
  void AppendAssistant();
  void Count(std::string_view text) { size_.text_bytes += static_cast<int64_t>(text.size()); }

  std::string out_;
  PromptSize size_;
  bool open_ = false;
  Role role_ = Role::kUser;
  // Of the open message.
  std::vector<Part> parts_;
  std::string reasoning_;
  std::string calls_;
};

}  // namespace tollgate::gateway
