#include "tests/engine_faults/verdict.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "tests/engine_faults/garbles.h"
#include "tests/support/json.h"
#include "tests/support/protocol/chat_checker.h"
#include "tests/support/protocol/completions_checker.h"
#include "tests/support/protocol/messages_checker.h"
#include "tests/support/protocol/responses_checker.h"
#include "tests/support/sim_embeddings.h"

namespace tollgate::test {
namespace {

// Status and code of every error that an engine's fault may cause (docs/errors.md).
const std::set<std::pair<int, std::string>> kErrors = {
    {400, "bad_request"},        {429, "rate_limited"},        {500, "server_error"},
    {502, "server_error"},       {502, "service_unavailable"}, {503, "model_unavailable"},
    {503, "service_unavailable"}};
// A stream that has begun with a comment also fails this way when no engine is available (decision
// 25).
const std::set<std::string> kCodesInStream = {"server_error", "service_unavailable", "rate_limited",
                                              "bad_request", "model_unavailable"};
// The Responses API has codes of its own in response.failed (docs/design/wire.md 5.3).
const std::set<std::string> kCodesOfResponses = {"server_error", "rate_limit_exceeded",
                                                 "invalid_prompt"};

// "[engine.number.tag.place]"
struct Mark {
  std::string mark;  // "engine.number"
  std::string tag;
  int64_t place = 0;
  size_t end = 0;  // one past it
};

std::optional<Mark> MarkAt(std::string_view text, size_t at) {
  if (at >= text.size() || text[at] != '[') return std::nullopt;
  const size_t end = text.find_first_of("]\"\\ ", at + 1);
  if (end == std::string_view::npos || text[end] != ']') return std::nullopt;
  std::vector<std::string> parts(1);
  for (const char c : text.substr(at + 1, end - at - 1)) {
    if (c == '.') {
      parts.emplace_back();
    } else if (std::isalnum(static_cast<unsigned char>(c))) {
      parts.back() += c;
    } else {
      return std::nullopt;
    }
  }
  if (parts.size() != 4 || parts[0].empty() || parts[0][0] != 'e') return std::nullopt;
  return Mark{parts[0] + "." + parts[1], parts[2], std::atoll(parts[3].c_str()), end + 1};
}

class Judgement {
 public:
  Judgement(const Question& question, const Answer& answer) : question_(question), answer_(answer) {
    verdict_.status = answer.status;
  }
  Verdict Take();

 private:
  void Expect(bool holds, const std::string& rule) {
    if (!holds) verdict_.wrong.push_back(rule);
  }
  void OwnMarksOnly();
  void Refusal();
  void Success();
  void Vectors();
  void Text(const Checked& checked);
  Checked Check() const;

  const Question& question_;
  const Answer& answer_;
  Verdict verdict_;
};

// Searches all bytes.
void Judgement::OwnMarksOnly() {
  const std::string& bytes = answer_.bytes;
  Expect(bytes.find(kEngineBody) == std::string::npos, "it holds a text of an engine's own");
  for (size_t at = 0; (at = bytes.find('[', at)) != std::string::npos; ++at) {
    const auto mark = MarkAt(bytes, at);
    if (!mark) continue;
    if (verdict_.mark.empty()) verdict_.mark = mark->mark;
    if (mark->tag != question_.tag) return Expect(false, "it holds text of " + mark->tag);
    if (mark->mark != verdict_.mark) {
      return Expect(false, "it joins text of " + verdict_.mark + " and " + mark->mark);
    }
    verdict_.tokens = std::max(verdict_.tokens, mark->place + 1);
  }
}

void Judgement::Refusal() {
  verdict_.end = Verdict::End::kRefused;
  Expect(answer_.type.starts_with("application/json"), "an error is JSON");
  Expect(verdict_.tokens == 0, "an error status holds output");
  const Json body = Json::Parse(answer_.bytes).value_or(Json());
  verdict_.code = body["error"]["code"].str();
  Expect(kErrors.contains({answer_.status, verdict_.code}),
         "no error of the catalog that an engine can cause: " + std::to_string(answer_.status) +
             " " + verdict_.code);
  Expect(!body["error"]["message"].str().empty() && !body["error"]["type"].str().empty(),
         "an error has a message and a type");
  const bool messages = question_.surface == Surface::kMessages;
  Expect(body["type"].str() == (messages ? "error" : ""), "the envelope of the other family");
}

Checked Judgement::Check() const {
  const std::string& bytes = answer_.bytes;
  switch (question_.surface) {
    case Surface::kChat: {
      const ChatExpectations expected{.include_usage = true};
      return question_.streamed ? CheckChatStream(bytes, expected) : CheckChatBody(bytes);
    }
    case Surface::kCompletions: {
      const CompletionsExpectations expected{.include_usage = true};
      return question_.streamed ? CheckCompletionsStream(bytes, expected)
                                : CheckCompletionsBody(bytes);
    }
    case Surface::kMessages:
      return question_.streamed ? CheckMessagesStream(bytes) : CheckMessagesBody(bytes);
    default:
      return question_.streamed ? CheckResponsesStream(bytes) : CheckResponsesBody(bytes);
  }
}

void Judgement::Text(const Checked& checked) {
  if (checked.choices.empty()) return Expect(false, "it has no choice");
  const AssembledChoice& choice = checked.choices[0];
  const std::string text = choice.reasoning + choice.text;
  int64_t next = 0;
  size_t at = 0;
  for (; at < text.size(); ++next) {
    const auto mark = MarkAt(text, at);
    if (!mark) return Expect(false, "what no engine wrote at byte " + std::to_string(at));
    if (mark->place != next) {
      return Expect(false,
                    "token " + std::to_string(mark->place) + " instead of " + std::to_string(next));
    }
    at = mark->end;
  }
  verdict_.tokens = next;
  if (verdict_.end != Verdict::End::kWhole) return;
  const std::set<std::string> finished = {"stop", "end_turn", "completed"};
  Expect(finished.contains(choice.finish), "it ends with " + choice.finish);
  if (!checked.usage) return Expect(false, "it has no usage");
  verdict_.prompt_told = checked.usage->prompt;
  verdict_.output_told = checked.usage->completion;
  Expect(verdict_.output_told == next, "usage of " + std::to_string(verdict_.output_told) +
                                           " for " + std::to_string(next) + " tokens");
}

void Judgement::Vectors() {
  verdict_.end = Verdict::End::kWhole;
  const Json body = Json::Parse(answer_.bytes).value_or(Json());
  const std::vector<float> expected = EmbeddingOf(Json(question_.tag), kEmbeddingDimensions);
  const std::vector<Json>& vector = body["data"][0]["embedding"].elements();
  bool same = body["data"].size() == 1 && vector.size() == expected.size();
  for (size_t i = 0; same && i < vector.size(); ++i) {
    same = static_cast<float>(vector[i].number()) == expected[i];
  }
  Expect(same, "not the vector of its input");
  verdict_.prompt_told = body["usage"]["prompt_tokens"].integer();
}

void Judgement::Success() {
  Expect(answer_.ended, "its transfer has no end");
  Expect(answer_.type.starts_with(question_.streamed ? "text/event-stream" : "application/json"),
         "its type is " + answer_.type);
  if (question_.surface == Surface::kEmbeddings) return Vectors();
  const Checked checked = Check();
  for (const std::string& violation : checked.violations) Expect(false, violation);
  if (checked.ending == Ending::kNone) return;  // the checker has recorded a violation
  verdict_.end =
      checked.ending == Ending::kError ? Verdict::End::kFailedInStream : Verdict::End::kWhole;
  verdict_.code = checked.error_code;
  if (verdict_.end == Verdict::End::kFailedInStream) {
    const auto& codes =
        question_.surface == Surface::kResponses ? kCodesOfResponses : kCodesInStream;
    Expect(codes.contains(verdict_.code), "fails in the stream with " + verdict_.code);
  }
  Text(checked);
}

Verdict Judgement::Take() {
  OwnMarksOnly();
  if (answer_.left) {
    verdict_.end = Verdict::End::kLeft;
  } else if (answer_.status == 0) {
    Expect(false, "no answer: " + answer_.error);
  } else if (answer_.status != 200) {
    Refusal();
  } else {
    Success();
  }
  return std::move(verdict_);
}

}  // namespace

const char* PathOf(Surface surface) {
  switch (surface) {
    case Surface::kChat:
      return "/v1/chat/completions";
    case Surface::kCompletions:
      return "/v1/completions";
    case Surface::kMessages:
      return "/v1/messages";
    case Surface::kResponses:
      return "/v1/responses";
    case Surface::kEmbeddings:
      break;
  }
  return "/v1/embeddings";
}

Verdict Judge(const Question& question, const Answer& answer) {
  return Judgement(question, answer).Take();
}

}  // namespace tollgate::test
