// Writes the `messages` of an engine request for the surfaces with another request format. Texts
// are copied in escaped form and measured at the same time (docs/design/ledger.md 4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

// Most messages of a request.
inline constexpr size_t kMaxMessages = 10'000;
// Separates joined texts, in a JSON string.
inline constexpr std::string_view kBlankLine = "\\n\\n";

// All texts are contents of JSON strings.
//
// Chat templates accept system messages only at the start, so a later one is folded (decision 39):
// into the user message that follows it, with tool results in between if there are any. If an
// assistant message or the end follows, it is folded into the user message before it, or becomes a
// user message.
class ConversationWriter {
 public:
  enum class Role : uint8_t { kSystem, kUser, kAssistant };

  // keeps_system_messages: true disables folding.
  explicit ConversationWriter(bool keeps_system_messages = false)
      : keeps_system_messages_(keeps_system_messages) {}

  // Begins a message of this role; an empty message is not written. With `join`, an open message of
  // the same role is continued instead.
  void Begin(Role role, bool join = false);
  // Adds text to the open message. System texts are joined by a blank line, assistant texts are
  // concatenated, several user texts stay separate parts.
  void Text(std::string_view text);
  // Adds an image_url part to a user message; detail may be empty. Counts as a media part.
  // ParseMediaUrl must accept the URL.
  void Image(std::string_view url, std::string_view detail = {});
  // Reasoning and ToolCall add to an assistant message.
  void Reasoning(std::string_view text);
  void ToolCall(std::string_view id, std::string_view name, std::string_view arguments);
  // Writes a message of role tool and ends the open message.
  void ToolResult(std::string_view call_id, std::string_view text);

  // Ends the open message.
  void End();
  bool empty() const { return size_.messages == 0; }
  // Returns the JSON array and ends the open message.
  std::string Take();
  // Valid after Take. Reasoning is written under two names but counted once.
  const PromptSize& size() const { return size_; }
  const std::set<std::string>& media_hosts() const { return media_hosts_; }

 private:
  struct Part {
    bool is_text;
    std::string json;  // for text, the contents of a JSON string; for media, the whole part
  };

  void Open(Role role);
  // Puts the folded texts before a message of this role that begins or continues next. Returns true
  // if they became the open message.
  bool Fold(Role role, bool join);
  void FoldIntoOpen();
  void BeginMessage();
  // Appends the texts of the open message as the contents of one JSON string.
  void AppendTexts(std::string_view separator);
  void AppendUserContent();
  void AppendAssistant();
  void Count(std::string_view text) { size_.text_bytes += static_cast<int64_t>(text.size()); }

  const bool keeps_system_messages_;
  std::string out_;
  PromptSize size_;
  std::set<std::string> media_hosts_;
  bool open_ = false;
  Role role_ = Role::kUser;
  bool has_turn_ = false;          // a message other than system has begun
  bool in_late_system_ = false;    // texts belong to a system message that is folded
  std::vector<std::string> late_;  // texts of that message
  // Parts of the open message.
  std::vector<Part> parts_;
  std::string reasoning_;
  std::string calls_;
};

}  // namespace tollgate::gateway
