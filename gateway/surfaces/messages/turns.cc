#include "gateway/surfaces/messages/turns.h"

#include <unordered_set>
#include <vector>

#include "common/base/try.h"
#include "gateway/surfaces/messages/content.h"
#include "gateway/surfaces/shared/conversation.h"

namespace tollgate::gateway {

namespace {

using Role = ConversationWriter::Role;

struct Turn {
  Role role;
  json::Value content;
};

Fail<Error> NoContent() { return BadRequest("'messages' has no content.", "messages"); }

class TurnsReader {
 public:
  TurnsReader(json::Value system, json::Value messages, bool keeps_system_messages)
      : system_(system), messages_(messages), writer_(keeps_system_messages) {}

  Result<MessagesTurns> Read();

 private:
  Result<void> CollectTurns();
  Result<void> ReadSystem(json::Value content, BlockPath path);
  Result<void> ReadAssistant(json::Value content, BlockPath path);
  Result<void> ReadAssistantBlock(json::Value block, const BlockPath& path);
  // Reads the consecutive user turns [begin, end).
  Result<void> ReadUser(size_t begin, size_t end);
  Result<void> ReadUserBlock(json::Value block, const BlockPath& path);
  Result<void> ReadToolResult(json::Value block, const BlockPath& path);

  json::Value system_, messages_;
  std::vector<Turn> turns_;
  ConversationWriter writer_;
  std::unordered_set<std::string> calls_;   // ids of the tool calls so far
  std::vector<std::string> result_images_;  // images of results in the current user turns
};

Result<void> TurnsReader::CollectTurns() {
  if (!messages_.is_array() || messages_.size() == 0) {
    return BadRequest("'messages' must be a non-empty array.", "messages");
  }
  if (messages_.size() > kMaxMessages) {
    return BadRequest("'messages' may hold at most " + std::to_string(kMaxMessages) + " items.",
                      "messages");
  }
  turns_.reserve(messages_.size());
  bool has_content = false;
  BlockPath path{"messages", 0, -1};
  for (const json::Value message : messages_) {
    if (!message.is_object()) return BadRequestAt(path, " must be an object.");
    const json::Value role = message.Find("role");
    Turn turn{Role::kUser, message.Find("content")};
    if (role.StringEquals("assistant")) {
      turn.role = Role::kAssistant;
    } else if (role.StringEquals("system")) {
      turn.role = Role::kSystem;
    } else if (!role.StringEquals("user")) {
      return BadRequestAt(path, ".role must be user, assistant or system.");
    }
    if (!turn.content.is_string() && !turn.content.is_array()) {
      return BadRequestAt(path, ".content must be a string or an array of content blocks.");
    }
    has_content = has_content || turn.content.is_string() || turn.content.size() > 0;
    path.block = 0;
    if (turn.content.is_array()) {
      for (const json::Value block : turn.content) {
        if (!block.is_object() || !block.Find("type").is_string()) {
          return BadRequestAt(path, " must be an object with a string 'type'.");
        }
        ++path.block;
      }
    }
    path.block = -1;
    ++path.turn;
    turns_.push_back(turn);
  }
  // A system prompt alone is not sufficient: chat templates require a turn.
  return has_content ? Result<void>() : NoContent();
}

Result<void> TurnsReader::ReadSystem(json::Value content, BlockPath path) {
  writer_.Begin(Role::kSystem, /*join=*/true);
  if (content.is_string()) {
    if (!content.raw_string().empty()) writer_.Text(content.raw_string());
    return {};
  }
  if (!content.is_array())
    return BadRequestAt(path, " must be a string or an array of text blocks.");
  for (const json::Value block : content) {
    ++path.block;
    const json::Value text = block.Find("text");
    if (!block.Find("type").StringEquals("text") || !text.is_string()) {
      return BadRequestAt(path, " must be a text block.");
    }
    if (!text.raw_string().empty()) writer_.Text(text.raw_string());
  }
  return {};
}

Result<void> TurnsReader::ReadAssistant(json::Value content, BlockPath path) {
  writer_.Begin(Role::kAssistant, /*join=*/true);
  if (content.is_string()) {
    writer_.Text(content.raw_string());
    return {};
  }
  for (const json::Value block : content) {
    ++path.block;
    TRY(ReadAssistantBlock(block, path));
  }
  return {};
}

Result<void> TurnsReader::ReadAssistantBlock(json::Value block, const BlockPath& path) {
  const json::Value type = block.Find("type");
  if (type.StringEquals("text")) {
    TRY(auto block_content, ReadContentBlock(block, path));
    writer_.Text(block_content.texts[0]);
    return {};
  }
  if (type.StringEquals("thinking")) {
    const json::Value thinking = block.Find("thinking");
    if (!thinking.is_string()) return BadRequestAt(path, ".thinking must be a string.");
    writer_.Reasoning(thinking.raw_string());
    return {};
  }
  if (type.StringEquals("tool_use")) {
    const json::Value id = block.Find("id");
    const json::Value name = block.Find("name");
    const json::Value input = block.Find("input");
    if (!id.is_string() || id.raw_string().empty()) {
      return BadRequestAt(path, ".id must be a non-empty string.");
    }
    if (!name.is_string() || name.raw_string().empty()) {
      return BadRequestAt(path, ".name must be a non-empty string.");
    }
    if (!input.is_null() && !input.is_object())
      return BadRequestAt(path, ".input must be an object.");
    std::string arguments;
    json::AppendEscaped(arguments, input.is_null() ? std::string_view("{}") : input.raw());
    writer_.ToolCall(id.raw_string(), name.raw_string(), arguments);
    calls_.insert(id.string());
    return {};
  }
  if (type.StringEquals("redacted_thinking") || IsServerBlock(type)) return {};
  return BadRequestAt(path, ".type '" + type.string() + "' is not supported in an assistant turn.");
}

Result<void> TurnsReader::ReadToolResult(json::Value block, const BlockPath& path) {
  const json::Value id = block.Find("tool_use_id");
  if (!id.is_string()) return BadRequestAt(path, ".tool_use_id must be a string.");
  if (!calls_.contains(id.string())) {
    return BadRequestAt(path,
                        ".tool_use_id '" + id.string() + "' does not match an earlier tool_use.");
  }
  const json::Value is_error = block.Find("is_error");
  if (!is_error.is_null() && !is_error.is_bool()) {
    return BadRequestAt(path, ".is_error must be true or false.");
  }
  std::string text;
  const auto add = [&text](std::string_view more) {
    if (!text.empty()) text += "\\n";
    text += more;
  };
  const json::Value content = block.Find("content");
  if (content.is_string()) {
    add(content.raw_string());
  } else if (content.is_array()) {
    for (const json::Value part : content) {
      TRY(auto block_content, ReadContentBlock(part, path));
      for (const std::string_view more : block_content.texts) add(more);
      if (!block_content.image_url.empty())
        result_images_.push_back(std::move(block_content.image_url));
    }
  } else if (!content.is_null()) {
    return BadRequestAt(path, ".content must be a string or an array of content blocks.");
  }
  // The chat format has no is_error.
  if (is_error.boolean()) text.insert(0, text.empty() ? "Error" : "Error: ");
  writer_.ToolResult(id.raw_string(), text);
  return {};
}

Result<void> TurnsReader::ReadUserBlock(json::Value block, const BlockPath& path) {
  const json::Value type = block.Find("type");
  if (IsServerBlock(type)) return {};
  TRY(auto block_content, ReadContentBlock(block, path));
  for (const std::string_view text : block_content.texts) writer_.Text(text);
  if (!block_content.image_url.empty()) writer_.Image(block_content.image_url);
  return {};
}

Result<void> TurnsReader::ReadUser(size_t begin, size_t end) {
  const auto is_result = [](json::Value block) {
    return block.Find("type").StringEquals("tool_result");
  };
  for (const bool results : {true, false}) {
    if (!results) {
      // Joins two user turns that have only a folded system turn between them.
      writer_.Begin(Role::kUser, /*join=*/true);
      for (const std::string& url : result_images_) writer_.Image(url);
      result_images_.clear();
    }
    for (size_t i = begin; i < end; ++i) {
      const json::Value content = turns_[i].content;
      if (content.is_string()) {
        if (!results) writer_.Text(content.raw_string());
        continue;
      }
      BlockPath path{"messages", static_cast<int>(i), -1};
      for (const json::Value block : content) {
        ++path.block;
        if (is_result(block) != results) continue;
        TRY(results ? ReadToolResult(block, path) : ReadUserBlock(block, path));
      }
    }
  }
  return {};
}

Result<MessagesTurns> TurnsReader::Read() {
  TRY(CollectTurns());
  if (!system_.is_null()) {
    TRY(ReadSystem(system_, {"system", -1, -1}));
  }
  for (size_t i = 0; i < turns_.size();) {
    size_t end = i + 1;
    Result<void> read;
    const BlockPath path{"messages", static_cast<int>(i), -1};
    switch (turns_[i].role) {
      case Role::kSystem:
        read = ReadSystem(turns_[i].content, path);
        break;
      case Role::kAssistant:
        read = ReadAssistant(turns_[i].content, path);
        break;
      case Role::kUser:
        while (end < turns_.size() && turns_[end].role == Role::kUser) ++end;
        read = ReadUser(i, end);
        break;
    }
    if (!read) return Fail{read.error()};
    i = end;
  }
  std::string messages = writer_.Take();
  if (writer_.empty()) return NoContent();
  return MessagesTurns{std::move(messages), writer_.size(), writer_.media_hosts()};
}

}  // namespace

Result<MessagesTurns> ReadMessagesTurns(json::Value system, json::Value messages,
                                        bool keeps_system_messages) {
  return TurnsReader(system, messages, keeps_system_messages).Read();
}

}  // namespace tollgate::gateway
