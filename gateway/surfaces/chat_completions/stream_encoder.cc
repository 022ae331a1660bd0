#include <map>
#include <vector>

#include "gateway/envelopes/stream_error.h"
#include "gateway/surfaces/chat_completions/encoders.h"
#include "gateway/surfaces/chat_completions/response_fields.h"
#include "gateway/surfaces/shared/answer_cost.h"
#include "gateway/surfaces/shared/function_tools.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

class ChatStreamEncoder : public StreamEncoder {
 public:
  ChatStreamEncoder(const CanonicalRequest& request, const ResponseStamp& stamp)
      : cost_(request),
        include_usage_(request.include_usage || cost_.asked()),
        hides_reasoning_(request.hides_reasoning),
        choices_(static_cast<size_t>(request.choices)) {
    stem_ =
        "data: {\"id\":\"chatcmpl-" + stamp.id +
        "\",\"object\":\"chat.completion.chunk\",\"created\":" + std::to_string(stamp.created_s) +
        ",\"model\":" + json::Quoted(request.model) + ",\"choices\":[";
    // With include_usage the public service sends "usage":null in every chunk but the last.
    tail_ = include_usage_ ? "],\"usage\":null}\n\n" : "]}\n\n";
    content_head_ = stem_ + "{\"index\":0,\"delta\":{\"content\":\"";
    content_tail_ = "\"},\"finish_reason\":null}" + tail_;
  }

  void OnStarted(const pb::Started&, std::string& out) override { Introduce(0, out); }
  void OnDelta(const pb::Delta& delta, std::string& out) override;
  void OnEnd(const pb::End& end, std::string& out) override;
  void OnError(const Error& error, std::string& out) override { out += OpenAiStreamError(error); }

 private:
  struct Choice {
    bool introduced = false;
    bool finished = false;
    std::map<int32_t, bool> tools;  // index of each call that was sent -> whether it has arguments
  };

  // Adds the role to the first chunk of each choice.
  void Introduce(int32_t index, std::string& out);
  void Chunk(int32_t index, std::string_view delta, std::string_view logprobs,
             std::string_view finish, std::string& out);
  void ToolCall(Choice& choice, const pb::ToolCallDelta& call, std::string& fields);
  void Finish(int32_t index, pb::FinishReason reason, std::string& out);

  const AnswerCost cost_;
  const bool include_usage_;
  const bool hides_reasoning_;
  std::string stem_, tail_;
  // Prefix and suffix of a text chunk of choice 0, which most chunks are.
  std::string content_head_, content_tail_;
  std::vector<Choice> choices_;
};

void ChatStreamEncoder::Introduce(int32_t index, std::string& out) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  if (choice.introduced) return;
  choice.introduced = true;
  Chunk(index, "\"role\":\"assistant\",\"content\":\"\"", {}, {}, out);
}

void ChatStreamEncoder::Chunk(int32_t index, std::string_view delta, std::string_view logprobs,
                              std::string_view finish, std::string& out) {
  out += stem_;
  out += "{\"index\":";
  out += std::to_string(index);
  out += ",\"delta\":{";
  out += delta;
  out += "}";
  if (!logprobs.empty()) {
    out += ",\"logprobs\":";
    out += logprobs;
  }
  if (finish.empty()) {
    out += ",\"finish_reason\":null}";
  } else {
    out += ",\"finish_reason\":\"";
    out += finish;
    out += "\"}";
  }
  out += tail_;
}

void ChatStreamEncoder::ToolCall(Choice& choice, const pb::ToolCallDelta& call,
                                 std::string& fields) {
  fields += "{\"index\":" + std::to_string(call.index());
  const auto [place, begins] = choice.tools.try_emplace(call.index(), false);
  place->second = place->second || !call.arguments_json().empty();
  // Only the first delta of a call has id, type and name.
  if (begins) {
    fields += ",\"id\":\"" + (call.id_json().empty() ? MakeToolCallId() : call.id_json()) +
              "\",\"type\":\"function\",\"function\":{\"name\":\"" + call.name_json() +
              "\",\"arguments\":\"" + call.arguments_json() + "\"}}";
  } else {
    fields += ",\"function\":{\"arguments\":\"" + call.arguments_json() + "\"}}";
  }
}

void ChatStreamEncoder::Finish(int32_t index, pb::FinishReason reason, std::string& out) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  choice.finished = true;
  if (ToolCallsAreComplete(reason)) {
    for (const auto& [tool, has_arguments] : choice.tools) {
      if (has_arguments) continue;
      Chunk(index,
            "\"tool_calls\":[{\"index\":" + std::to_string(tool) +
                ",\"function\":{\"arguments\":\"" + std::string(kEmptyArguments) + "\"}}]",
            {}, {}, out);
    }
  }
  Chunk(index, {}, {}, ChatFinishReason(reason, !choice.tools.empty()), out);
}

void ChatStreamEncoder::OnDelta(const pb::Delta& delta, std::string& out) {
  if (hides_reasoning_ && !delta.reasoning_json().empty()) {
    return OnDelta(WithoutReasoning(delta), out);
  }
  // Clients fail on an index at or above their n.
  if (delta.choice() < 0 || static_cast<size_t>(delta.choice()) >= choices_.size()) return;
  Introduce(delta.choice(), out);
  Choice& choice = choices_[static_cast<size_t>(delta.choice())];
  if (choice.finished) return;
  const bool plain = delta.reasoning_json().empty() && delta.tool_calls().empty() &&
                     delta.logprobs_json().empty() && delta.refusal_json().empty();
  if (plain && delta.choice() == 0 && !delta.content_json().empty()) {
    out += content_head_;
    out += delta.content_json();
    out += content_tail_;
  } else if (!plain || !delta.content_json().empty()) {
    std::string fields;
    const auto text = [&fields](std::string_view name, const std::string& escaped) {
      if (escaped.empty()) return;
      fields += fields.empty() ? "\"" : ",\"";
      fields += name;
      fields += "\":\"";
      fields += escaped;
      fields += "\"";
    };
    text("reasoning_content", delta.reasoning_json());
    text("content", delta.content_json());
    text("refusal", delta.refusal_json());
    if (!delta.tool_calls().empty()) {
      fields += fields.empty() ? "\"tool_calls\":[" : ",\"tool_calls\":[";
      bool first = true;
      for (const pb::ToolCallDelta& call : delta.tool_calls()) {
        if (!first) fields += ",";
        first = false;
        ToolCall(choice, call, fields);
      }
      fields += "]";
    }
    Chunk(delta.choice(), fields,
          delta.logprobs_json().empty() ? "" : PublicLogprobs(delta.logprobs_json()), {}, out);
  }
  if (delta.finish_reason() != pb::FINISH_REASON_UNSPECIFIED) {
    Finish(delta.choice(), delta.finish_reason(), out);
  }
}

void ChatStreamEncoder::OnEnd(const pb::End& end, std::string& out) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    Introduce(index, out);
    if (!choices_[i].finished) Finish(index, DefaultFinishReason(end), out);
  }
  if (include_usage_) {
    out += stem_;
    out += "],\"usage\":";
    AppendChatUsage(out, end.usage(), cost_.Members(end));
    out += "}\n\n";
  }
  out += "data: [DONE]\n\n";
}

}  // namespace

std::unique_ptr<StreamEncoder> MakeChatStreamEncoder(const CanonicalRequest& request,
                                                     const ResponseStamp& stamp) {
  return std::make_unique<ChatStreamEncoder>(request, stamp);
}

}  // namespace tollgate::gateway
