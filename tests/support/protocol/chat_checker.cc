#include "tests/support/protocol/chat_checker.h"

#include "tests/support/protocol/public_stream.h"

namespace tollgate::test {
namespace {

class ChatChecker {
 public:
  ChatChecker(Checked& out, const ChatExpectations& expected)
      : out_(out),
        find_(out.violations),
        expected_(expected),
        choices_(static_cast<size_t>(expected.choices)) {
    out_.choices.resize(choices_.size());
  }

  void Stream(std::string_view bytes);
  void Body(std::string_view body);

 private:
  struct Seen {
    bool role = false;
    bool finished = false;
  };

  void Event(const PublicEvent& event);
  void Chunk(const Json& chunk);
  void Choice(const Json& choice);
  void Delta(const Json& delta, Seen& seen, AssembledChoice& choice);
  void ToolDelta(const Json& call, AssembledChoice& choice);
  void Texts(const Json& from, AssembledChoice& choice);
  void Logprobs(const Json& logprobs, AssembledChoice& choice);
  void Finish(const Json& reason, AssembledChoice& choice);
  void Done();
  void WholeChoice(const Json& choice, size_t index);

  Checked& out_;
  Findings find_;
  const ChatExpectations expected_;
  std::vector<Seen> choices_;
  ChunkStamp stamp_;
};

void ChatChecker::Stream(std::string_view bytes) {
  ForEachEvent(bytes, out_, find_, [this](const PublicEvent& event) { Event(event); });
  find_.Expect(out_.ending != Ending::kNone, "the stream ends in [DONE] or an error");
}

void ChatChecker::Event(const PublicEvent& event) {
  find_.Expect(event.name.empty(), "chat streams have no event lines");
  find_.Expect(out_.ending == Ending::kNone, "nothing follows the end");
  if (event.is_done()) return Done();
  if (event.json.has("error")) {
    out_.error_code = CheckOpenAiError(event.json, find_);
    out_.ending = Ending::kError;
    return;
  }
  Chunk(event.json);
}

void ChatChecker::Chunk(const Json& chunk) {
  find_.Keys(chunk, "a chunk", {"id", "object", "created", "model", "choices"}, {"usage"});
  stamp_.Check(chunk, "chat.completion.chunk", "chatcmpl-", out_, find_);
  find_.Expect(chunk["choices"].is_array(), "choices is an array");
  find_.Expect(!out_.usage, "the usage chunk is the last one");
  if (chunk["choices"].size() == 0) {
    find_.Expect(expected_.include_usage, "without include_usage every chunk has a choice");
    for (const Seen& seen : choices_) {
      find_.Expect(seen.finished, "the usage chunk follows every finish");
    }
    out_.usage = CheckChatUsage(chunk["usage"], find_);
    return;
  }
  find_.Expect(!chunk.has("usage") || (expected_.include_usage && chunk["usage"].is_null()),
               "only the last chunk has usage, and only when it was asked for");
  for (const Json& choice : chunk["choices"].elements()) Choice(choice);
}

void ChatChecker::Choice(const Json& choice) {
  find_.Keys(choice, "a choice", {"index", "delta", "finish_reason"}, {"logprobs"});
  const int64_t index = choice["index"].integer(-1);
  const bool known = IsInteger(choice["index"]) && index >= 0 && index < expected_.choices;
  if (!find_.Expect(known, "a choice's index is below n")) return;
  Seen& seen = choices_[static_cast<size_t>(index)];
  AssembledChoice& assembled = out_.choices[static_cast<size_t>(index)];
  find_.Expect(!seen.finished, "nothing follows a choice's finish_reason");
  Delta(choice["delta"], seen, assembled);
  Logprobs(choice["logprobs"], assembled);
  if (choice["finish_reason"].is_null()) return;
  seen.finished = true;
  Finish(choice["finish_reason"], assembled);
}

void ChatChecker::Delta(const Json& delta, Seen& seen, AssembledChoice& choice) {
  find_.Keys(delta, "a delta", {},
             {"role", "content", "reasoning_content", "refusal", "tool_calls"});
  if (!seen.role) {
    find_.Expect(delta["role"].str() == "assistant", "a choice's first delta has the role");
    find_.Expect(
        delta.has("content") && delta["content"].is_string() && delta["content"].str().empty(),
        "the role comes with empty content");
  } else {
    find_.Expect(!delta.has("role"), "the role comes once");
  }
  seen.role = true;
  Texts(delta, choice);
  if (!delta.has("tool_calls")) return;
  const Json& calls = delta["tool_calls"];
  find_.Expect(calls.is_array() && calls.size() > 0, "tool_calls is an array that is not empty");
  for (const Json& call : calls.elements()) ToolDelta(call, choice);
}

void ChatChecker::Texts(const Json& from, AssembledChoice& choice) {
  const auto add = [&](const char* name, std::string& to) {
    if (!from.has(name)) return;
    find_.String(from[name], name);
    to += from[name].str();
  };
  add("content", choice.text);
  add("reasoning_content", choice.reasoning);
  add("refusal", choice.refusal);
}

void ChatChecker::ToolDelta(const Json& call, AssembledChoice& choice) {
  const int64_t index = call["index"].integer(-1);
  const auto count = static_cast<int64_t>(choice.calls.size());
  if (!find_.Expect(IsInteger(call["index"]) && index >= 0 && index <= count,
                    "tool indexes count up from 0")) {
    return;
  }
  const Json& function = call["function"];
  if (index == count) {
    find_.Keys(call, "a call's first delta", {"index", "id", "type", "function"});
    find_.Keys(function, "function", {"name", "arguments"});
    find_.NonEmptyString(call["id"], "a call's id");
    find_.Expect(call["type"].str() == "function", "a call's type is function");
    find_.NonEmptyString(function["name"], "a call's name");
    for (const AssembledCall& other : choice.calls) {
      find_.Expect(other.id != call["id"].str(), "calls have ids of their own");
    }
    choice.calls.push_back({call["id"].str(), function["name"].str(), ""});
  } else {
    find_.Keys(call, "a call's later delta", {"index", "function"});
    find_.Keys(function, "function", {"arguments"});
  }
  find_.String(function["arguments"], "arguments");
  choice.calls[static_cast<size_t>(index)].arguments += function["arguments"].str();
}

void ChatChecker::Logprobs(const Json& logprobs, AssembledChoice& choice) {
  if (logprobs.is_null()) return;
  find_.Keys(logprobs, "logprobs", {"content", "refusal"});
  for (const char* name : {"content", "refusal"}) {
    find_.Expect(logprobs[name].is_null() || logprobs[name].is_array(),
                 "logprobs are arrays or null");
  }
  for (const Json& token : logprobs["content"].elements()) {
    choice.logprob_tokens.push_back(token["token"].str());
  }
}

void ChatChecker::Finish(const Json& reason, AssembledChoice& choice) {
  choice.finish = reason.str();
  find_.Expect(OneOf(choice.finish, {"stop", "length", "tool_calls", "content_filter"}),
               "finish_reason is a public one");
  if (choice.finish == "stop") {
    find_.Expect(choice.calls.empty(), "an answer with calls does not finish with stop");
  }
  if (choice.finish == "tool_calls") {
    find_.Expect(!choice.calls.empty(), "tool_calls needs a call");
  }
}

void ChatChecker::Done() {
  out_.ending = Ending::kWell;
  for (const Seen& seen : choices_) find_.Expect(seen.finished, "every choice has finished");
  if (expected_.include_usage) find_.Expect(out_.usage.has_value(), "usage comes before [DONE]");
}

void ChatChecker::WholeChoice(const Json& choice, size_t index) {
  find_.Keys(choice, "a choice", {"index", "message", "logprobs", "finish_reason"});
  find_.Expect(choice["index"].Dump() == std::to_string(index), "choices count up");
  const Json& message = choice["message"];
  find_.Keys(message, "message", {"role", "content", "refusal"},
             {"reasoning_content", "tool_calls"});
  AssembledChoice& assembled = out_.choices[index];
  find_.Expect(message["role"].str() == "assistant", "the role is assistant");
  find_.Expect(message["content"].is_string() || message.has("tool_calls"),
               "content is null only together with calls");
  assembled.text = message["content"].str();
  assembled.reasoning = message["reasoning_content"].str();
  assembled.refusal = message["refusal"].str();
  if (message.has("tool_calls")) {
    find_.Expect(message["tool_calls"].size() > 0, "tool_calls is left out when empty");
  }
  for (const Json& call : message["tool_calls"].elements()) {
    find_.Keys(call, "a call", {"id", "type", "function"});
    find_.Keys(call["function"], "function", {"name", "arguments"});
    find_.NonEmptyString(call["id"], "a call's id");
    find_.Expect(call["type"].str() == "function", "a call's type is function");
    find_.NonEmptyString(call["function"]["name"], "a call's name");
    find_.String(call["function"]["arguments"], "arguments");
    assembled.calls.push_back(
        {call["id"].str(), call["function"]["name"].str(), call["function"]["arguments"].str()});
  }
  Logprobs(choice["logprobs"], assembled);
  Finish(choice["finish_reason"], assembled);
}

void ChatChecker::Body(std::string_view body) {
  find_.Expect(IsUtf8(body), "the body is UTF-8");
  const std::optional<Json> json = Json::Parse(body);
  if (!find_.Expect(json && json->is_object(), "the body is a JSON object")) return;
  find_.Keys(*json, "the body", {"id", "object", "created", "model", "choices", "usage"});
  stamp_.Check(*json, "chat.completion", "chatcmpl-", out_, find_);
  const Json& choices = (*json)["choices"];
  if (!find_.Expect(choices.size() == choices_.size(), "there are n choices")) return;
  for (size_t i = 0; i < choices.size(); ++i) WholeChoice(choices[i], i);
  out_.usage = CheckChatUsage((*json)["usage"], find_);
  out_.ending = Ending::kWell;
}

}  // namespace

Checked CheckChatStream(std::string_view bytes, const ChatExpectations& expected) {
  Checked checked;
  ChatChecker(checked, expected).Stream(bytes);
  return checked;
}

Checked CheckChatBody(std::string_view body, const ChatExpectations& expected) {
  Checked checked;
  ChatChecker(checked, expected).Body(body);
  return checked;
}

}  // namespace tollgate::test
