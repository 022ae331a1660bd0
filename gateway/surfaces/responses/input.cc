#include "gateway/surfaces/responses/input.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "gateway/surfaces/shared/conversation.h"

namespace tollgate::gateway {

namespace {

using Role = ConversationWriter::Role;

Fail<Error> Wrong(size_t index, std::string_view what) {
  return BadRequest("input[" + std::to_string(index) + "]" + std::string(what), "input");
}

// Where two texts meet that were parts of one.
constexpr std::string_view kBetweenTexts = "\\n\\n";

class Reader {
 public:
  Result<ReadInput> Read(json::Value instructions, json::Value input);

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
  // Ends the assistant's turn, or begins the message that its items go on with.
  void EndTurn();
  void BeginAssistant(bool join);
  // Tool messages hold text only: what images the outputs had follow as the user's.
  void LetImagesOut();

  ConversationWriter writer_;
  std::string reasoning_;   // waits for the assistant's next item
  bool calling_ = false;    // the open message has calls
  bool assistant_ = false;  // the open message is the assistant's
  std::unordered_set<std::string> calls_;
  std::unordered_set<std::string> skipped_calls_;  // of kinds that are not understood
  std::vector<Image> images_;
};

void Reader::LetImagesOut() {
  if (images_.empty()) return;
  writer_.Begin(Role::kUser);
  for (const Image& image : images_) writer_.Image(image.url, image.detail);
  images_.clear();
}

void Reader::EndTurn() {
  reasoning_.clear();
  assistant_ = false;
  calling_ = false;
}

void Reader::BeginAssistant(bool join) {
  LetImagesOut();
  writer_.Begin(Role::kAssistant, join && assistant_);
  if (!join || !assistant_) calling_ = false;
  assistant_ = true;
  if (!reasoning_.empty()) writer_.Reasoning(std::exchange(reasoning_, {}));
}

Result<Reader::Image> Reader::ReadImage(size_t index, json::Value part) {
  const json::Value url = part.Find("image_url");
  if (!url.is_string() || url.raw_string().empty()) {
    return Wrong(index, ": images must have a string 'image_url'; there are no files to refer to.");
  }
  const json::Value detail = part.Find("detail");
  // Levels that engines do not know are left to them.
  const bool known = detail.StringEquals("low") || detail.StringEquals("high");
  return Image{url.raw_string(), known ? detail.raw_string() : std::string_view()};
}

Result<void> Reader::ReadPart(size_t index, Role role, json::Value part) {
  const json::Value type = part.Find("type");
  if (!part.is_object() || !type.is_string()) {
    return Wrong(index, ".content must be a string or parts with a string 'type'.");
  }
  if (type.StringEquals("input_image") && role == Role::kUser) {
    auto image = ReadImage(index, part);
    if (!image) return Fail{image.error()};
    writer_.Image(image->url, image->detail);
    return {};
  }
  const bool text = type.StringEquals("input_text") || type.StringEquals("output_text") ||
                    type.StringEquals("text");
  if (!text && !type.StringEquals("refusal")) {
    return Wrong(index, ".content: parts of type '" + type.string() + "' are not supported here.");
  }
  const json::Value inside = part.Find(text ? "text" : "refusal");
  if (!inside.is_string()) return Wrong(index, ".content: a part has no text.");
  writer_.Text(inside.raw_string());
  return {};
}

Result<void> Reader::ReadMessage(size_t index, json::Value item) {
  const json::Value role_value = item.Find("role");
  Role role = Role::kUser;
  if (role_value.StringEquals("assistant")) {
    role = Role::kAssistant;
    // A call's turn goes on; two messages stay two.
    BeginAssistant(calling_);
  } else {
    EndTurn();
    LetImagesOut();
    if (role_value.StringEquals("system") || role_value.StringEquals("developer")) {
      role = Role::kSystem;
      // Templates that know one system message only want it whole.
      writer_.Begin(role, true);
    } else if (role_value.StringEquals("user")) {
      writer_.Begin(role);
    } else {
      return Wrong(index, ".role must be user, assistant, system or developer.");
    }
  }
  const json::Value content = item.Find("content");
  if (content.is_string()) {
    writer_.Text(content.raw_string());
    return {};
  }
  if (!content.is_array()) return Wrong(index, ".content must be a string or an array of parts.");
  for (const json::Value part : content) {
    if (auto read = ReadPart(index, role, part); !read) return read;
  }
  return {};
}

Result<void> Reader::ReadCall(size_t index, json::Value item) {
  const json::Value id = item.Find("call_id");
  const json::Value name = item.Find("name");
  const json::Value arguments = item.Find("arguments");
  if (!id.is_string() || !name.is_string() || !arguments.is_string()) {
    return Wrong(index, " must have the strings 'call_id', 'name' and 'arguments'.");
  }
  BeginAssistant(true);
  calling_ = true;
  calls_.insert(id.string());
  writer_.ToolCall(id.raw_string(), name.raw_string(), arguments.raw_string());
  return {};
}

Result<void> Reader::ReadOutput(size_t index, json::Value item) {
  const json::Value id = item.Find("call_id");
  if (!id.is_string()) return Wrong(index, ".call_id must be a string.");
  if (!calls_.contains(id.string())) {
    if (skipped_calls_.contains(id.string())) return {};
    // Chat templates fail on it, each in its own way.
    return Wrong(index, " is the output of a function call that is not in 'input'.");
  }
  EndTurn();
  const json::Value output = item.Find("output");
  if (output.is_string()) {
    writer_.ToolResult(id.raw_string(), output.raw_string());
    return {};
  }
  if (!output.is_array()) return Wrong(index, ".output must be a string or an array of parts.");
  std::string text;
  for (const json::Value part : output) {
    if (part.Find("type").StringEquals("input_image")) {
      auto image = ReadImage(index, part);
      if (!image) return Fail{image.error()};
      images_.push_back(*image);
      continue;
    }
    const json::Value inside = part.Find("text");
    if (!inside.is_string()) {
      return Wrong(index, ".output may hold parts of text and images only.");
    }
    if (!text.empty()) text += kBetweenTexts;
    text += inside.raw_string();
  }
  writer_.ToolResult(id.raw_string(), text);
  return {};
}

// The reasoning itself where an item has it, else its summary.
void Reader::ReadReasoning(json::Value item) {
  for (const char* member : {"content", "summary"}) {
    std::string all;
    for (const json::Value part : item.Find(member)) {
      const json::Value text = part.Find("text");
      if (!text.is_string()) continue;
      if (!all.empty()) all += kBetweenTexts;
      all += text.raw_string();
    }
    if (all.empty()) continue;
    if (!reasoning_.empty()) reasoning_ += kBetweenTexts;
    reasoning_ += all;
    return;
  }
}

Result<void> Reader::ReadItem(size_t index, json::Value item) {
  const json::Value type = item.Find("type");
  if (!item.is_object() || (!type.is_null() && !type.is_string())) {
    return Wrong(index, " must be an item: an object with a string 'type'.");
  }
  if (type.is_null() || type.StringEquals("message")) return ReadMessage(index, item);
  if (type.StringEquals("function_call")) return ReadCall(index, item);
  if (type.StringEquals("function_call_output")) return ReadOutput(index, item);
  if (type.StringEquals("reasoning")) {
    ReadReasoning(item);
    return {};
  }
  if (type.StringEquals("item_reference")) {
    // Reasoning may be left out of a history (wire reference 7.3), so a reference to it may as
    // well: the AI SDK sends one with each round of tool calls unless it is told not to store.
    if (item.Find("id").is_string() && item.Find("id").string().starts_with("rs_")) return {};
    return Wrong(index,
                 " refers to a stored item, and nothing is stored here: send the item itself, as "
                 "clients do with 'store: false'.");
  }
  if (const json::Value id = item.Find("call_id"); id.is_string()) {
    skipped_calls_.insert(id.string());
  }
  return {};
}

Result<ReadInput> Reader::Read(json::Value instructions, json::Value input) {
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
      if (auto read = ReadItem(index++, item); !read) return Fail{read.error()};
    }
    LetImagesOut();
  } else {
    return BadRequest("'input' must be a string or a non-empty array of items.", "input");
  }
  ReadInput read;
  read.messages = writer_.Take();
  read.size = writer_.size();
  if (writer_.empty()) return BadRequest("'input' holds nothing that a model can read.", "input");
  return read;
}

}  // namespace

Result<ReadInput> ReadResponsesInput(json::Value instructions, json::Value input) {
  return Reader().Read(instructions, input);
}

}  // namespace tollgate::gateway
