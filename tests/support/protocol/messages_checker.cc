#include "tests/support/protocol/messages_checker.h"

#include "tests/support/protocol/public_stream.h"

namespace tollgate::test {
namespace {

// The open block.
struct Block {
  std::string type;
  bool signed_off = false;  // its signature was received
  AssembledCall call;
};

class MessagesChecker {
 public:
  explicit MessagesChecker(Checked& out) : out_(out), find_(out.violations) {
    out_.choices.resize(1);
  }
  void Stream(std::string_view bytes);
  void Body(std::string_view body);

 private:
  void Event(const PublicEvent& event);
  void Start(const Json& data);
  void BlockStart(const Json& data);
  void BlockDelta(const Json& data);
  void BlockStop(const Json& data);
  void MessageDelta(const Json& data);
  void MessageStop(const Json& data);
  void ErrorEvent(const Json& data);
  void Message(const Json& message, bool whole);
  void Usage(const Json& usage, bool all);
  void StopReason(const Json& from);
  void WholeBlock(const Json& block);
  bool IsOpen(const Json& data);
  void NoteBlock(const std::string& type);

  AssembledChoice& answer() { return out_.choices[0]; }

  Checked& out_;
  Findings find_;
  bool started_ = false;
  std::optional<Block> block_;
  int64_t blocks_ = 0;
  bool has_output_ = false;  // a text block or a call
  bool delta_seen_ = false;
  bool whole_inputs_ = true;  // every call's input is a JSON object
  int64_t input_ = 0, cache_read_ = 0, cache_write_ = 0;
};

void MessagesChecker::Stream(std::string_view bytes) {
  ForEachEvent(bytes, out_, find_, [this](const PublicEvent& event) { Event(event); });
  find_.Expect(out_.ending != Ending::kNone, "the stream ends in message_stop or an error");
}

void MessagesChecker::Event(const PublicEvent& event) {
  if (!find_.Expect(!event.is_done(), "message streams have no [DONE]")) return;
  const std::string& type = event.json["type"].str();
  find_.Expect(event.name == type, "the event line equals the type");
  find_.Expect(out_.ending == Ending::kNone, "nothing follows the end");
  if (type == "ping") {
    find_.Keys(event.json, "ping", {"type"});
    return;
  }
  if (type == "error") return ErrorEvent(event.json);
  if (type == "message_start") return Start(event.json);
  find_.Expect(started_, "message_start comes first");
  find_.Expect(!delta_seen_ || type == "message_stop", "only message_stop follows message_delta");
  if (type == "content_block_start") return BlockStart(event.json);
  if (type == "content_block_delta") return BlockDelta(event.json);
  if (type == "content_block_stop") return BlockStop(event.json);
  if (type == "message_delta") return MessageDelta(event.json);
  if (type == "message_stop") return MessageStop(event.json);
  find_.Expect(false, "the event type is a public one");
}

void MessagesChecker::ErrorEvent(const Json& data) {
  find_.Keys(data, "the error event", {"type", "error"}, {"request_id"});
  find_.Keys(data["error"], "error", {"type", "code", "message"});
  for (const char* name : {"type", "code", "message"}) {
    find_.NonEmptyString(data["error"][name], name);
  }
  find_.Expect(
      OneOf(data["error"]["type"].str(),
            {"invalid_request_error", "authentication_error", "permission_error", "not_found_error",
             "request_too_large", "rate_limit_error", "api_error", "overloaded_error"}),
      "the error's type is a public one");
  out_.error_code = data["error"]["code"].str();
  out_.ending = Ending::kError;
}

void MessagesChecker::Start(const Json& data) {
  find_.Expect(!started_, "there is one message_start");
  started_ = true;
  find_.Keys(data, "message_start", {"type", "message"});
  const Json& message = data["message"];
  Message(message, false);
  find_.Expect(message["content"].is_array() && message["content"].size() == 0,
               "message_start has no content");
  find_.Expect(message["stop_reason"].is_null() && message["stop_sequence"].is_null(),
               "message_start has no stop_reason");
}

void MessagesChecker::Message(const Json& message, bool whole) {
  find_.Keys(message, "the message",
             {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"});
  find_.Expect(message["id"].str().starts_with("msg_") && message["id"].str().size() > 4,
               "id is msg_…");
  find_.Expect(message["type"].str() == "message", "type is message");
  find_.Expect(message["role"].str() == "assistant", "role is assistant");
  find_.NonEmptyString(message["model"], "model");
  out_.id = message["id"].str();
  out_.model = message["model"].str();
  Usage(message["usage"], true);
  if (!whole) {
    find_.Expect(message["usage"]["output_tokens"].integer(-1) <= 1, "no output at the start");
  }
}

// Members overwrite those of message_start (docs/design/wire.md 6.3).
void MessagesChecker::Usage(const Json& usage, bool all) {
  static const std::vector<std::string_view> kInput = {
      "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"};
  std::vector<std::string_view> required = {"output_tokens"};
  if (all) required.insert(required.end(), kInput.begin(), kInput.end());
  std::vector<std::string_view> optional = kInput;
  optional.emplace_back("output_tokens_details");
  find_.Keys(usage, "usage", required, optional);
  for (const Json::Member& member : usage.members()) {
    if (member.first != "output_tokens_details") find_.Integer(member.second, member.first);
  }
  input_ = usage["input_tokens"].integer(input_);
  cache_write_ = usage["cache_creation_input_tokens"].integer(cache_write_);
  cache_read_ = usage["cache_read_input_tokens"].integer(cache_read_);
  AssembledUsage& read = out_.usage ? *out_.usage : out_.usage.emplace();
  find_.Expect(usage["output_tokens"].integer() >= read.completion, "output_tokens grow");
  read.completion = usage["output_tokens"].integer();
  read.prompt = input_ + cache_read_ + cache_write_;
  read.cached = cache_read_;
  read.cache_write = cache_write_;
  if (usage.has("output_tokens_details")) {
    const Json& details = usage["output_tokens_details"];
    find_.Keys(details, "output_tokens_details", {"thinking_tokens"});
    find_.Integer(details["thinking_tokens"], "thinking_tokens");
    read.reasoning = details["thinking_tokens"].integer();
    find_.Expect(read.reasoning <= read.completion, "thinking is part of the output");
  }
}

void MessagesChecker::NoteBlock(const std::string& type) {
  ++blocks_;
  has_output_ = has_output_ || type == "text" || type == "tool_use";
}

void MessagesChecker::BlockStart(const Json& data) {
  find_.Keys(data, "content_block_start", {"type", "index", "content_block"});
  find_.Expect(!block_, "blocks do not overlap");
  find_.Expect(data["index"].Dump() == std::to_string(blocks_), "block indexes count up from 0");
  const Json& block = data["content_block"];
  block_.emplace();
  block_->type = block["type"].str();
  if (block_->type == "thinking") {
    find_.Keys(block, "a thinking block", {"type", "thinking", "signature"});
    find_.Expect(block["thinking"].is_string() && block["thinking"].str().empty() &&
                     block["signature"].is_string() && block["signature"].str().empty(),
                 "a block starts empty");
  } else if (block_->type == "text") {
    find_.Keys(block, "a text block", {"type", "text"}, {"citations"});
    find_.Expect(block["text"].is_string() && block["text"].str().empty(), "a block starts empty");
  } else if (block_->type == "tool_use") {
    find_.Keys(block, "a tool_use block", {"type", "id", "name", "input"});
    find_.NonEmptyString(block["id"], "a call's id");
    find_.NonEmptyString(block["name"], "a call's name");
    find_.Expect(block["input"].is_object() && block["input"].size() == 0, "input starts as {}");
    for (const AssembledCall& other : answer().calls) {
      find_.Expect(other.id != block["id"].str(), "calls have ids of their own");
    }
    block_->call.id = block["id"].str();
    block_->call.name = block["name"].str();
  } else {
    find_.Expect(false, "a block is thinking, text or tool_use");
  }
  NoteBlock(block_->type);
}

bool MessagesChecker::IsOpen(const Json& data) {
  return find_.Expect(block_ && data["index"].Dump() == std::to_string(blocks_ - 1),
                      "deltas and stops name the open block");
}

void MessagesChecker::BlockDelta(const Json& data) {
  find_.Keys(data, "content_block_delta", {"type", "index", "delta"});
  if (!IsOpen(data)) return;
  const Json& delta = data["delta"];
  const std::string& type = delta["type"].str();
  find_.Expect(!block_->signed_off, "the signature is the block's last delta");
  const auto take = [&](const char* block, const char* member) {
    find_.Expect(block_->type == block, "a delta is of its block's type");
    find_.Keys(delta, "a delta", {"type", member});
    find_.String(delta[member], member);
    return delta[member].str();
  };
  if (type == "thinking_delta") {
    answer().reasoning += take("thinking", "thinking");
  } else if (type == "signature_delta") {
    find_.Expect(!take("thinking", "signature").empty(), "the signature is not empty");
    block_->signed_off = true;
  } else if (type == "text_delta") {
    answer().text += take("text", "text");
  } else if (type == "input_json_delta") {
    block_->call.arguments += take("tool_use", "partial_json");
  } else {
    find_.Expect(false, "the delta's type is a public one");
  }
}

void MessagesChecker::BlockStop(const Json& data) {
  find_.Keys(data, "content_block_stop", {"type", "index"});
  if (!IsOpen(data)) return;
  if (block_->type == "thinking") {
    find_.Expect(block_->signed_off, "a thinking block ends with its signature");
  }
  if (block_->type == "tool_use") {
    if (block_->call.arguments.empty()) block_->call.arguments = "{}";
    const std::optional<Json> input = Json::Parse(block_->call.arguments);
    whole_inputs_ = whole_inputs_ && input && input->is_object();
    answer().calls.push_back(block_->call);
  }
  block_.reset();
}

void MessagesChecker::StopReason(const Json& from) {
  answer().finish = from["stop_reason"].str();
  find_.Expect(OneOf(answer().finish, {"end_turn", "max_tokens", "stop_sequence", "tool_use",
                                       "refusal", "model_context_window_exceeded"}),
               "stop_reason is a public one");
  const Json& sequence = from["stop_sequence"];
  find_.Expect(sequence.is_null() || sequence.is_string(), "stop_sequence is a string or null");
  find_.Expect((answer().finish == "stop_sequence") == sequence.is_string(),
               "stop_sequence is set when it is the reason, and only then");
  answer().stop_sequence = sequence.str();
  find_.Expect((answer().finish != "tool_use") || !answer().calls.empty(), "tool_use needs a call");
  find_.Expect(answer().finish != "end_turn" || answer().calls.empty(),
               "an answer with calls does not end with end_turn");
  find_.Expect(answer().finish != "end_turn" || has_output_,
               "an answer with neither text nor call has an empty text block");
  // max_tokens reached inside a call leaves it unfinished.
  find_.Expect(whole_inputs_ || OneOf(answer().finish, {"max_tokens", "refusal"}),
               "a call's pieces are one JSON object");
}

void MessagesChecker::MessageDelta(const Json& data) {
  find_.Keys(data, "message_delta", {"type", "delta", "usage"});
  find_.Expect(!block_, "every block has stopped");
  delta_seen_ = true;
  find_.Keys(data["delta"], "the delta", {"stop_reason", "stop_sequence"});
  Usage(data["usage"], false);
  StopReason(data["delta"]);
}

void MessagesChecker::MessageStop(const Json& data) {
  find_.Keys(data, "message_stop", {"type"});
  find_.Expect(delta_seen_, "message_delta comes before message_stop");
  out_.ending = Ending::kWell;
}

void MessagesChecker::WholeBlock(const Json& block) {
  const std::string& type = block["type"].str();
  NoteBlock(type);
  if (type == "thinking") {
    find_.Keys(block, "a thinking block", {"type", "thinking", "signature"});
    find_.NonEmptyString(block["signature"], "the signature");
    find_.String(block["thinking"], "thinking");
    answer().reasoning += block["thinking"].str();
  } else if (type == "text") {
    find_.Keys(block, "a text block", {"type", "text"}, {"citations"});
    find_.String(block["text"], "text");
    answer().text += block["text"].str();
  } else if (type == "tool_use") {
    find_.Keys(block, "a tool_use block", {"type", "id", "name", "input"});
    find_.NonEmptyString(block["id"], "a call's id");
    find_.NonEmptyString(block["name"], "a call's name");
    find_.Expect(block["input"].is_object(), "input is an object");
    answer().calls.push_back({block["id"].str(), block["name"].str(), block["input"].Dump()});
  } else {
    find_.Expect(false, "a block is thinking, text or tool_use");
  }
}

void MessagesChecker::Body(std::string_view body) {
  find_.Expect(IsUtf8(body), "the body is UTF-8");
  const std::optional<Json> json = Json::Parse(body);
  if (!find_.Expect(json && json->is_object(), "the body is a JSON object")) return;
  Message(*json, true);
  find_.Expect((*json)["content"].is_array(), "content is an array");
  for (const Json& block : (*json)["content"].elements()) WholeBlock(block);
  StopReason(*json);
  out_.ending = Ending::kWell;
}

}  // namespace

Checked CheckMessagesStream(std::string_view bytes) {
  Checked checked;
  MessagesChecker(checked).Stream(bytes);
  return checked;
}

Checked CheckMessagesBody(std::string_view body) {
  Checked checked;
  MessagesChecker(checked).Body(body);
  return checked;
}

}  // namespace tollgate::test
