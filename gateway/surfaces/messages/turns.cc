#include "gateway/surfaces/messages/turns.h"

#include <unordered_set>
#include <vector>

#include "gateway/surfaces/messages/content.h"
#include "gateway/surfaces/shared/conversation.h"

namespace tollgate::gateway {

namespace {

constexpr size_t kMaxMessages = 10'000;

using Role = ConversationWriter::Role;

struct Turn {
  Role role;
  json::Value content;
};

Fail<Error> SaysNothing() { return BadRequest("'messages' says nothing.", "messages"); }

class Reader {
 public:
  Reader(json::Value system, json::Value messages) : system_(system), messages_(messages) {}

  Result<ReadTurns> Read();

 private:
  Result<void> CollectTurns();
  Result<void> ReadSystem(json::Value content, Place place);
  Result<void> ReadAssistant(json::Value content, Place place);
  Result<void> ReadAssistantBlock(json::Value block, const Place& place);
  // User turns in a row: [begin, end).
  Result<void> ReadUser(size_t begin, size_t end);
  Result<void> ReadUserBlock(json::Value block, const Place& place);
  Result<void> ReadToolResult(json::Value block, const Place& place);

  json::Value system_, messages_;
  std::vector<Turn> turns_;
  ConversationWriter writer_;
  std::unordered_set<std::string> calls_;   // ids of the tool calls so far
  std::vector<std::string> result_images_;  // of the user turns being read
};

Result<void> Reader::CollectTurns() {
  if (!messages_.is_array() || messages_.size() == 0) {
    return BadRequest("'messages' must be a non-empty array.", "messages");
  }
  if (messages_.size() > kMaxMessages) {
    return BadRequest("'messages' may hold at most " + std::to_string(kMaxMessages) + " items.",
                      "messages");
  }
  turns_.reserve(messages_.size());
  bool anything = false;
  Place place{"messages", 0, -1};
  for (const json::Value message : messages_) {
    if (!message.is_object()) return WrongAt(place, " must be an object.");
    const json::Value role = message.Find("role");
    Turn turn{Role::kUser, message.Find("content")};
    if (role.StringEquals("assistant")) {
      turn.role = Role::kAssistant;
    } else if (role.StringEquals("system")) {
      turn.role = Role::kSystem;
    } else if (!role.StringEquals("user")) {
      return WrongAt(place, ".role must be user, assistant or system.");
    }
    if (!turn.content.is_string() && !turn.content.is_array()) {
      return WrongAt(place, ".content must be a string or an array of content blocks.");
    }
    anything = anything || turn.content.is_string() || turn.content.size() > 0;
    place.block = 0;
    if (turn.content.is_array()) {
      for (const json::Value block : turn.content) {
        if (!block.is_object() || !block.Find("type").is_string()) {
          return WrongAt(place, " must be an object with a string 'type'.");
        }
        ++place.block;
      }
    }
    place.block = -1;
    ++place.turn;
    turns_.push_back(turn);
  }
  // Not even where there is a system prompt: chat templates want somebody to answer to.
  return anything ? Result<void>() : SaysNothing();
}

Result<void> Reader::ReadSystem(json::Value content, Place place) {
  writer_.Begin(Role::kSystem, /*join=*/true);
  if (content.is_string()) {
    if (!content.raw_string().empty()) writer_.Text(content.raw_string());
    return {};
  }
  if (!content.is_array()) return WrongAt(place, " must be a string or an array of text blocks.");
  for (const json::Value block : content) {
    ++place.block;
    const json::Value text = block.Find("text");
    if (!block.Find("type").StringEquals("text") || !text.is_string()) {
      return WrongAt(place, " must be a text block.");
    }
    if (!text.raw_string().empty()) writer_.Text(text.raw_string());
  }
  return {};
}

Result<void> Reader::ReadAssistant(json::Value content, Place place) {
  writer_.Begin(Role::kAssistant, /*join=*/true);
  if (content.is_string()) {
    writer_.Text(content.raw_string());
    return {};
  }
  for (const json::Value block : content) {
    ++place.block;
    if (auto read = ReadAssistantBlock(block, place); !read) return read;
  }
  return {};
}

Result<void> Reader::ReadAssistantBlock(json::Value block, const Place& place) {
  const json::Value type = block.Find("type");
  if (type.StringEquals("text")) {
    auto said = ReadSaying(block, place);
    if (!said) return Fail{said.error()};
    writer_.Text(said->texts[0]);
    return {};
  }
  if (type.StringEquals("thinking")) {
    const json::Value thinking = block.Find("thinking");
    if (!thinking.is_string()) return WrongAt(place, ".thinking must be a string.");
    writer_.Reasoning(thinking.raw_string());
    return {};
  }
  if (type.StringEquals("tool_use")) {
    const json::Value id = block.Find("id");
    const json::Value name = block.Find("name");
    const json::Value input = block.Find("input");
    if (!id.is_string() || id.raw_string().empty()) {
      return WrongAt(place, ".id must be a non-empty string.");
    }
    if (!name.is_string() || name.raw_string().empty()) {
      return WrongAt(place, ".name must be a non-empty string.");
    }
    if (!input.is_null() && !input.is_object()) return WrongAt(place, ".input must be an object.");
    std::string arguments;
    json::AppendEscaped(arguments, input.is_null() ? std::string_view("{}") : input.raw());
    writer_.ToolCall(id.raw_string(), name.raw_string(), arguments);
    calls_.insert(id.string());
    return {};
  }
  if (type.StringEquals("redacted_thinking") || IsServerBlock(type)) return {};
  return WrongAt(place, ".type '" + type.string() + "' is not supported in an assistant turn.");
}

Result<void> Reader::ReadToolResult(json::Value block, const Place& place) {
  const json::Value id = block.Find("tool_use_id");
  if (!id.is_string()) return WrongAt(place, ".tool_use_id must be a string.");
  if (!calls_.contains(id.string())) {
    return WrongAt(place, ".tool_use_id '" + id.string() + "' is that of no tool_use before it.");
  }
  const json::Value is_error = block.Find("is_error");
  if (!is_error.is_null() && !is_error.is_bool()) {
    return WrongAt(place, ".is_error must be true or false.");
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
      auto said = ReadSaying(part, place);
      if (!said) return Fail{said.error()};
      for (const std::string_view more : said->texts) add(more);
      if (!said->image_url.empty()) result_images_.push_back(std::move(said->image_url));
    }
  } else if (!content.is_null()) {
    return WrongAt(place, ".content must be a string or an array of content blocks.");
  }
  // The chat format has no mark for it.
  if (is_error.boolean()) text.insert(0, text.empty() ? "Error" : "Error: ");
  writer_.ToolResult(id.raw_string(), text);
  return {};
}

Result<void> Reader::ReadUserBlock(json::Value block, const Place& place) {
  const json::Value type = block.Find("type");
  if (IsServerBlock(type)) return {};
  auto said = ReadSaying(block, place);
  if (!said) return Fail{said.error()};
  for (const std::string_view text : said->texts) writer_.Text(text);
  if (!said->image_url.empty()) writer_.Image(said->image_url);
  return {};
}

Result<void> Reader::ReadUser(size_t begin, size_t end) {
  const auto is_result = [](json::Value block) {
    return block.Find("type").StringEquals("tool_result");
  };
  for (const bool results : {true, false}) {
    if (!results) {
      writer_.Begin(Role::kUser);
      for (const std::string& url : result_images_) writer_.Image(url);
      result_images_.clear();
    }
    for (size_t i = begin; i < end; ++i) {
      const json::Value content = turns_[i].content;
      if (content.is_string()) {
        if (!results) writer_.Text(content.raw_string());
        continue;
      }
      Place place{"messages", static_cast<int>(i), -1};
      for (const json::Value block : content) {
        ++place.block;
        if (is_result(block) != results) continue;
        auto read = results ? ReadToolResult(block, place) : ReadUserBlock(block, place);
        if (!read) return read;
      }
    }
  }
  return {};
}

Result<ReadTurns> Reader::Read() {
  if (auto collected = CollectTurns(); !collected) return Fail{collected.error()};
  if (!system_.is_null()) {
    if (auto read = ReadSystem(system_, {"system", -1, -1}); !read) return Fail{read.error()};
  }
  for (size_t i = 0; i < turns_.size();) {
    size_t end = i + 1;
    Result<void> read;
    const Place place{"messages", static_cast<int>(i), -1};
    switch (turns_[i].role) {
      case Role::kSystem:
        read = ReadSystem(turns_[i].content, place);
        break;
      case Role::kAssistant:
        read = ReadAssistant(turns_[i].content, place);
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
  if (writer_.empty()) return SaysNothing();
  return ReadTurns{std::move(messages), writer_.size()};
}

}  // namespace

Result<ReadTurns> ReadMessagesTurns(json::Value system, json::Value messages) {
  return Reader(system, messages).Read();
}

}  // namespace tollgate::gateway
