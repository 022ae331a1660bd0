#include "tests/support/protocol/completions_checker.h"

#include "tests/support/protocol/public_stream.h"

namespace tollgate::test {
namespace {

class CompletionsChecker {
 public:
  CompletionsChecker(Checked& out, const CompletionsExpectations& expected)
      : out_(out),
        find_(out.violations),
        expected_(expected),
        finished_(static_cast<size_t>(expected.choices)) {
    out_.choices.resize(finished_.size());
  }

  void Stream(std::string_view bytes);
  void Body(std::string_view body);

 private:
  void Event(const PublicEvent& event);
  void Chunk(const Json& chunk);
  void Choice(const Json& choice);
  void Done();

  Checked& out_;
  Findings find_;
  const CompletionsExpectations expected_;
  std::vector<bool> finished_;
  ChunkStamp stamp_;
};

void CompletionsChecker::Stream(std::string_view bytes) {
  ForEachEvent(bytes, out_, find_, [this](const PublicEvent& event) { Event(event); });
  find_.Expect(out_.ending != Ending::kNone, "the stream ends in [DONE] or an error");
}

void CompletionsChecker::Event(const PublicEvent& event) {
  find_.Expect(event.name.empty(), "completion streams have no event lines");
  find_.Expect(out_.ending == Ending::kNone, "nothing follows the end");
  if (event.is_done()) return Done();
  if (event.json.has("error")) {
    out_.error_code = CheckOpenAiError(event.json, find_);
    out_.ending = Ending::kError;
    return;
  }
  Chunk(event.json);
}

void CompletionsChecker::Chunk(const Json& chunk) {
  find_.Keys(chunk, "a chunk", {"id", "object", "created", "model", "choices"}, {"usage"});
  stamp_.Check(chunk, "text_completion", "cmpl-", out_, find_);
  find_.Expect(chunk["choices"].is_array(), "choices is an array");
  find_.Expect(!out_.usage, "the usage chunk is the last one");
  if (chunk["choices"].size() == 0) {
    find_.Expect(expected_.include_usage, "without include_usage every chunk has a choice");
    for (const bool finished : finished_) {
      find_.Expect(finished, "the usage chunk follows every finish");
    }
    out_.usage = CheckChatUsage(chunk["usage"], find_);
    return;
  }
  find_.Expect(!chunk.has("usage") || (expected_.include_usage && chunk["usage"].is_null()),
               "only the last chunk has usage, and only when it was asked for");
  for (const Json& choice : chunk["choices"].elements()) Choice(choice);
}

void CompletionsChecker::Choice(const Json& choice) {
  find_.Keys(choice, "a choice", {"text", "index", "logprobs", "finish_reason"});
  const int64_t index = choice["index"].integer(-1);
  const bool known = IsInteger(choice["index"]) && index >= 0 && index < expected_.choices;
  if (!find_.Expect(known, "a choice's index is below the number of answers")) return;
  AssembledChoice& assembled = out_.choices[static_cast<size_t>(index)];
  find_.Expect(!finished_[static_cast<size_t>(index)], "nothing follows a choice's finish_reason");
  find_.String(choice["text"], "text");
  assembled.text += choice["text"].str();
  const Json& logprobs = choice["logprobs"];
  if (!logprobs.is_null()) {
    find_.Keys(logprobs, "logprobs", {"tokens", "token_logprobs", "top_logprobs", "text_offset"});
    for (const Json& token : logprobs["tokens"].elements()) {
      assembled.logprob_tokens.push_back(token.str());
    }
  }
  if (choice["finish_reason"].is_null()) return;
  finished_[static_cast<size_t>(index)] = true;
  assembled.finish = choice["finish_reason"].str();
  find_.Expect(OneOf(assembled.finish, {"stop", "length", "content_filter"}),
               "finish_reason is a public one");
}

void CompletionsChecker::Done() {
  out_.ending = Ending::kWell;
  for (const bool finished : finished_) find_.Expect(finished, "every choice has finished");
  if (expected_.include_usage) find_.Expect(out_.usage.has_value(), "usage comes before [DONE]");
}

void CompletionsChecker::Body(std::string_view body) {
  find_.Expect(IsUtf8(body), "the body is UTF-8");
  const std::optional<Json> json = Json::Parse(body);
  if (!find_.Expect(json && json->is_object(), "the body is a JSON object")) return;
  find_.Keys(*json, "the body", {"id", "object", "created", "model", "choices", "usage"});
  stamp_.Check(*json, "text_completion", "cmpl-", out_, find_);
  const Json& choices = (*json)["choices"];
  find_.Expect(choices.size() == finished_.size(), "there is a choice per prompt and n");
  for (size_t i = 0; i < choices.size(); ++i) {
    find_.Expect(choices[i]["index"].Dump() == std::to_string(i), "choices count up");
    Choice(choices[i]);
  }
  Done();
  out_.usage = CheckChatUsage((*json)["usage"], find_);
}

}  // namespace

Checked CheckCompletionsStream(std::string_view bytes, const CompletionsExpectations& expected) {
  Checked checked;
  CompletionsChecker(checked, expected).Stream(bytes);
  return checked;
}

Checked CheckCompletionsBody(std::string_view body, const CompletionsExpectations& expected) {
  Checked checked;
  CompletionsChecker(checked, expected).Body(body);
  return checked;
}

}  // namespace tollgate::test
