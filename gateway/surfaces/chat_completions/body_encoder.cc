#include <map>
#include <vector>

#include "gateway/surfaces/chat_completions/encoders.h"
#include "gateway/surfaces/chat_completions/response_fields.h"
#include "gateway/surfaces/shared/answer_cost.h"
#include "gateway/surfaces/shared/function_tools.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

class ChatBodyEncoder : public BodyEncoder {
 public:
  ChatBodyEncoder(const CanonicalRequest& request, const ResponseStamp& stamp)
      : model_(request.model),
        stamp_(stamp),
        cost_(request),
        hides_reasoning_(request.hides_reasoning),
        choices_(static_cast<size_t>(request.choices)) {}

  void OnDelta(const pb::Delta& delta) override;
  std::string Finish(const pb::End& end) override;

 private:
  struct Call {
    std::string id, name, arguments;
  };
  // All texts are contents of JSON strings, as received.
  struct Choice {
    std::string content, reasoning, refusal;
    std::map<int32_t, Call> calls;
    std::vector<std::string> logprobs;
    pb::FinishReason finish = pb::FINISH_REASON_UNSPECIFIED;
  };

  static void AppendMessage(const Choice& choice, pb::FinishReason finish, std::string& out);
  static void AppendLogprobs(const Choice& choice, std::string& out);

  const std::string model_;
  const ResponseStamp stamp_;
  const AnswerCost cost_;
  const bool hides_reasoning_;
  std::vector<Choice> choices_;
};

void ChatBodyEncoder::OnDelta(const pb::Delta& delta) {
  if (hides_reasoning_ && !delta.reasoning_json().empty()) return OnDelta(WithoutReasoning(delta));
  if (delta.choice() < 0 || static_cast<size_t>(delta.choice()) >= choices_.size()) return;
  Choice& choice = choices_[static_cast<size_t>(delta.choice())];
  choice.content += delta.content_json();
  choice.reasoning += delta.reasoning_json();
  choice.refusal += delta.refusal_json();
  for (const pb::ToolCallDelta& piece : delta.tool_calls()) {
    Call& call = choice.calls[piece.index()];
    if (call.id.empty()) call.id = piece.id_json();
    if (call.name.empty()) call.name = piece.name_json();
    call.arguments += piece.arguments_json();
  }
  if (!delta.logprobs_json().empty()) choice.logprobs.push_back(delta.logprobs_json());
  if (delta.finish_reason() != pb::FINISH_REASON_UNSPECIFIED) choice.finish = delta.finish_reason();
}

void ChatBodyEncoder::AppendMessage(const Choice& choice, pb::FinishReason finish,
                                    std::string& out) {
  out += "{\"role\":\"assistant\",\"content\":";
  // Null only together with tool calls; "" when max_tokens ended the reasoning (docs/design/wire.md
  // 2.2).
  if (choice.content.empty() && !choice.calls.empty()) {
    out += "null";
  } else {
    out += "\"" + choice.content + "\"";
  }
  out += choice.refusal.empty() ? ",\"refusal\":null" : ",\"refusal\":\"" + choice.refusal + "\"";
  if (!choice.reasoning.empty()) out += ",\"reasoning_content\":\"" + choice.reasoning + "\"";
  if (!choice.calls.empty()) {
    out += ",\"tool_calls\":";
    char separator = '[';
    for (const auto& [index, call] : choice.calls) {
      const bool none = call.arguments.empty() && ToolCallsAreComplete(finish);
      out += separator;
      separator = ',';
      out += "{\"id\":\"" + (call.id.empty() ? MakeToolCallId() : call.id) +
             "\",\"type\":\"function\",\"function\":{\"name\":\"" + call.name +
             "\",\"arguments\":\"" + (none ? std::string(kEmptyArguments) : call.arguments) +
             "\"}}";
    }
    out += "]";
  }
  out += "}";
}

// Concatenates the token lists of all deltas.
void ChatBodyEncoder::AppendLogprobs(const Choice& choice, std::string& out) {
  if (choice.logprobs.empty()) {
    out += "null";
    return;
  }
  std::string content, refusal;
  for (const std::string& piece : choice.logprobs) {
    const std::string public_logprobs = PublicLogprobs(piece);
    json::Limits limits;
    limits.allow_lone_surrogates = true;
    limits.allow_nul = true;
    const auto document = json::Document::ParseView(public_logprobs, limits);
    if (!document) continue;
    const auto join = [](std::string& list, json::Value tokens) {
      if (!tokens.is_array() || tokens.size() == 0) return;
      list += list.empty() ? "[" : ",";
      list += tokens.raw().substr(1, tokens.raw().size() - 2);
    };
    join(content, document->root().Find("content"));
    join(refusal, document->root().Find("refusal"));
  }
  out += "{\"content\":" + (content.empty() ? "[]" : content + "]");
  out += ",\"refusal\":" + (refusal.empty() ? "null" : refusal + "]") + "}";
}

std::string ChatBodyEncoder::Finish(const pb::End& end) {
  size_t size = 512;
  for (const Choice& choice : choices_)
    size += choice.content.size() + choice.reasoning.size() + 256;
  std::string out;
  out.reserve(size);
  out += "{\"id\":\"chatcmpl-" + stamp_.id +
         "\",\"object\":\"chat.completion\",\"created\":" + std::to_string(stamp_.created_s) +
         ",\"model\":" + json::Quoted(model_) + ",\"choices\":[";
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    if (i > 0) out += ",";
    out += "{\"index\":" + std::to_string(i) + ",\"message\":";
    const pb::FinishReason finish =
        choice.finish == pb::FINISH_REASON_UNSPECIFIED ? DefaultFinishReason(end) : choice.finish;
    AppendMessage(choice, finish, out);
    out += ",\"logprobs\":";
    AppendLogprobs(choice, out);
    out += ",\"finish_reason\":\"";
    out += ChatFinishReason(finish, !choice.calls.empty());
    out += "\"}";
  }
  out += "],\"usage\":";
  AppendChatUsage(out, end.usage(), cost_.Members(end));
  out += "}";
  return out;
}

}  // namespace

std::unique_ptr<BodyEncoder> MakeChatBodyEncoder(const CanonicalRequest& request,
                                                 const ResponseStamp& stamp) {
  return std::make_unique<ChatBodyEncoder>(request, stamp);
}

}  // namespace tollgate::gateway
