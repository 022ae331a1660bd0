#include "gateway/surfaces/responses/input.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "common/base/try.h"
#include "gateway/surfaces/shared/conversation.h"
#include "gateway/surfaces/shared/media_url.h"

namespace tollgate::gateway {

namespace {

using Role = ConversationWriter::Role;

Fail<Error> BadItem(size_t index, std::string_view problem) {
  return BadRequest("input[" + std::to_string(index) + "]" + std::string(problem), "input");
}

// Separator of joined text parts.
constexpr std::string_view kBetweenTexts = "\\n\\n";

class InputReader {
 public:
  explicit InputReader(const ResponsesInputOptions& options)
      : options_(options), writer_(options.keeps_system_messages) {}

  Result<ResponsesInput> Read(json::Value instructions, json::Value input);

 private:
  struct Image {
    std::string_view url, detail;
  };

  Result<void> ReadItem(size_t index, json::Value item);
  Result<void> ReadMessage(size_t index, json::Value item);
  Result<void> ReadPart(size_t index, Role role, json::Value part);
  Result<void> ReadCall(size_t index, json::Value item);
  Result<void> ReadOutput(size_t index, json::Value item);
  void ReadReasoning(json::Value item);
  Result<Image> ReadImage(size_t index, json::Value part);
  // EndTurn ends the assistant's turn; BeginAssistant begins or continues its message.
  void EndTurn();
  void BeginAssistant(bool join);
  // Writes pending images as a user message, because tool messages hold only text.
  void FlushImages();

  const ResponsesInputOptions& options_;
  ConversationWriter writer_;
  std::string reasoning_;           // pending until the assistant's next item
  bool has_calls_ = false;          // the open message has calls
  bool in_assistant_turn_ = false;  // the open message is the assistant's
  std::unordered_set<std::string> calls_;
  std::unordered_set<std::string> skipped_calls_;  // calls of unknown item types
  std::vector<Image> images_;
};

void InputReader::FlushImages() {
  if (images_.empty()) return;
  writer_.Begin(Role::kUser);
  for (const Image& image : images_) writer_.Image(image.url, image.detail);
  images_.clear();
}

void InputReader::EndTurn() {
  reasoning_.clear();
  in_assistant_turn_ = false;
  has_calls_ = false;
}

void InputReader::BeginAssistant(bool join) {
  FlushImages();
  writer_.Begin(Role::kAssistant, join && in_assistant_turn_);
  if (!join || !in_assistant_turn_) has_calls_ = false;
  in_assistant_turn_ = true;
  if (!reasoning_.empty()) writer_.Reasoning(std::exchange(reasoning_, {}));
}

Result<InputReader::Image> InputReader::ReadImage(size_t index, json::Value part) {
  const json::Value url = part.Find("image_url");
  if (!url.is_string() || url.raw_string().empty()) {
    return BadItem(index,
                   ": images must have a string 'image_url'; file references are not supported.");
  }
  if (!ParseMediaUrl(url.raw_string())) {
    return BadItem(index, ": an 'image_url'" + std::string(kBadMediaUrl));
  }
  const json::Value detail = part.Find("detail");
  // Other levels are omitted, so engines use their default.
  const bool known = detail.StringEquals("low") || detail.StringEquals("high");
  return Image{url.raw_string(), known ? detail.raw_string() : std::string_view()};
}

Result<void> InputReader::ReadPart(size_t index, Role role, json::Value part) {
  const json::Value type = part.Find("type");
  if (!part.is_object() || !type.is_string()) {
    return BadItem(index, ".content must be a string or parts with a string 'type'.");
  }
  if (type.StringEquals("input_image") && role == Role::kUser) {
    TRY(auto image, ReadImage(index, part));
    writer_.Image(image.url, image.detail);
    return {};
  }
  const bool text = type.StringEquals("input_text") || type.StringEquals("output_text") ||
                    type.StringEquals("text");
  if (!text && !type.StringEquals("refusal")) {
    return BadItem(index,
                   ".content: parts of type '" + type.string() + "' are not supported here.");
  }
  const json::Value value = part.Find(text ? "text" : "refusal");
  if (!value.is_string()) return BadItem(index, ".content: a part has no text.");
  writer_.Text(value.raw_string());
  return {};
}

Result<void> InputReader::ReadMessage(size_t index, json::Value item) {
  const json::Value role_value = item.Find("role");
  Role role = Role::kUser;
  if (role_value.StringEquals("assistant")) {
    role = Role::kAssistant;
    // Continues a turn that has calls. Two messages stay separate.
    BeginAssistant(has_calls_);
  } else {
    EndTurn();
    FlushImages();
    if (role_value.StringEquals("system") || role_value.StringEquals("developer")) {
      role = Role::kSystem;
      // System texts are joined because some templates support only one system message.
      writer_.Begin(role, true);
    } else if (role_value.StringEquals("user")) {
      writer_.Begin(role);
    } else {
      return BadItem(index, ".role must be user, assistant, system or developer.");
    }
  }
  const json::Value content = item.Find("content");
  if (content.is_string()) {
    writer_.Text(content.raw_string());
    return {};
  }
  if (!content.is_array()) return BadItem(index, ".content must be a string or an array of parts.");
  for (const json::Value part : content) {
    TRY(ReadPart(index, role, part));
  }
  return {};
}

Result<void> InputReader::ReadCall(size_t index, json::Value item) {
  const json::Value id = item.Find("call_id");
  const json::Value name = item.Find("name");
  const json::Value arguments = item.Find("arguments");
  if (!id.is_string() || !name.is_string() || !arguments.is_string()) {
    return BadItem(index, " must have the strings 'call_id', 'name' and 'arguments'.");
  }
  BeginAssistant(true);
  has_calls_ = true;
  calls_.insert(id.string());
  writer_.ToolCall(id.raw_string(), name.raw_string(), arguments.raw_string());
  return {};
}

Result<void> InputReader::ReadOutput(size_t index, json::Value item) {
  const json::Value id = item.Find("call_id");
  if (!id.is_string()) return BadItem(index, ".call_id must be a string.");
  if (!calls_.contains(id.string())) {
    if (skipped_calls_.contains(id.string())) return {};
    // Chat templates fail on an output without a call.
    return BadItem(index, " is the output of a function call that is not in 'input'.");
  }
  EndTurn();
  const json::Value output = item.Find("output");
  if (output.is_string()) {
    writer_.ToolResult(id.raw_string(), output.raw_string());
    return {};
  }
  if (!output.is_array()) return BadItem(index, ".output must be a string or an array of parts.");
  std::string text;
  for (const json::Value part : output) {
    if (part.Find("type").StringEquals("input_image")) {
      TRY(auto image, ReadImage(index, part));
      images_.push_back(image);
      continue;
    }
    const json::Value value = part.Find("text");
    if (!value.is_string()) {
      return BadItem(index, ".output may hold text and image parts only.");
    }
    if (!text.empty()) text += kBetweenTexts;
    text += value.raw_string();
  }
  writer_.ToolResult(id.raw_string(), text);
  return {};
}

// Uses the reasoning text of an item, sealed or plain, else its summary.
void InputReader::ReadReasoning(json::Value item) {
  const auto add = [this](std::string_view text) {
    if (!reasoning_.empty()) reasoning_ += kBetweenTexts;
    reasoning_ += text;
  };
  const json::Value sealed = item.Find("encrypted_content");
  if (options_.seal != nullptr && sealed.is_string()) {
    if (const auto text = options_.seal->Unseal(sealed.string(), options_.now_s)) {
      return add(*text);
    }
  }
  for (const char* member : {"content", "summary"}) {
    std::string all;
    for (const json::Value part : item.Find(member)) {
      const json::Value text = part.Find("text");
      if (!text.is_string()) continue;
      if (!all.empty()) all += kBetweenTexts;
      all += text.raw_string();
    }
    if (all.empty()) continue;
    return add(all);
  }
}

Result<void> InputReader::ReadItem(size_t index, json::Value item) {
  const json::Value type = item.Find("type");
  if (!item.is_object() || (!type.is_null() && !type.is_string())) {
    return BadItem(index, " must be an item: an object with a string 'type'.");
  }
  if (type.is_null() || type.StringEquals("message")) return ReadMessage(index, item);
  if (type.StringEquals("function_call")) return ReadCall(index, item);
  if (type.StringEquals("function_call_output")) return ReadOutput(index, item);
  if (type.StringEquals("reasoning")) {
    ReadReasoning(item);
    return {};
  }
  if (type.StringEquals("item_reference")) {
    // Reasoning in a history is optional (docs/design/wire.md 7.3), so a reference to it is
    // ignored. The AI SDK sends one with each round of tool calls unless `store` is false.
    if (item.Find("id").is_string() && item.Find("id").string().starts_with("rs_")) return {};
    return BadItem(index,
                   " refers to a stored item, and items are not stored: send the item itself, as "
                   "clients do with 'store: false'.");
  }
  if (const json::Value id = item.Find("call_id"); id.is_string()) {
    skipped_calls_.insert(id.string());
  }
  return {};
}

Result<ResponsesInput> InputReader::Read(json::Value instructions, json::Value input) {
  if (!instructions.is_null()) {
    if (!instructions.is_string()) {
      return BadRequest("'instructions' must be a string.", "instructions");
    }
    writer_.Begin(Role::kSystem);
    writer_.Text(instructions.raw_string());
  }
  if (input.is_string()) {
    writer_.Begin(Role::kUser);
    writer_.Text(input.raw_string());
  } else if (input.is_array() && input.size() > 0) {
    size_t index = 0;
    for (const json::Value item : input) {
      TRY(ReadItem(index++, item));
    }
    FlushImages();
  } else {
    return BadRequest("'input' must be a string or a non-empty array of items.", "input");
  }
  ResponsesInput read;
  read.messages = writer_.Take();
  read.size = writer_.size();
  read.media_hosts = writer_.media_hosts();
  if (writer_.empty()) return BadRequest("'input' has no content for the model.", "input");
  return read;
}

}  // namespace

Result<ResponsesInput> ReadResponsesInput(json::Value instructions, json::Value input,
                                          const ResponsesInputOptions& options) {
  return InputReader(options).Read(instructions, input);
}

}  // namespace tollgate::gateway
