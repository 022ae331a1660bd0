#include <vector>

#include "gateway/envelopes/stream_error.h"
#include "gateway/surfaces/completions/encoders.h"
#include "gateway/surfaces/completions/logprobs.h"
#include "gateway/surfaces/completions/response_fields.h"
#include "gateway/surfaces/shared/answer_cost.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

class CompletionStreamEncoder : public StreamEncoder {
 public:
  CompletionStreamEncoder(const CanonicalRequest& request, const ResponseStamp& stamp)
      : cost_(request),
        include_usage_(request.include_usage || cost_.asked()),
        choices_(static_cast<size_t>(request.choices)) {
    stem_ = "data: " + CompletionHead(request, stamp);
    // With include_usage the public service sends "usage":null in every chunk but the last.
    tail_ = include_usage_ ? "],\"usage\":null}\n\n" : "]}\n\n";
    text_tail_ = "\",\"logprobs\":null,\"finish_reason\":null}" + tail_;
  }

  void OnStarted(const pb::Started&, std::string&) override {}
  void OnDelta(const pb::Delta& delta, std::string& out) override;
  void OnEnd(const pb::End& end, std::string& out) override;
  void OnError(const Error& error, std::string& out) override { out += OpenAiStreamError(error); }

 private:
  struct Choice {
    bool finished = false;
    LegacyLogprobs logprobs;
  };

  void BeginChunk(int32_t index, std::string_view text, std::string& out) const;
  void Finish(int32_t index, pb::FinishReason reason, std::string& out);

  const AnswerCost cost_;
  const bool include_usage_;
  std::string stem_, tail_;
  std::string text_tail_;  // suffix of a text chunk without logprobs
  std::vector<Choice> choices_;
};

void CompletionStreamEncoder::BeginChunk(int32_t index, std::string_view text,
                                         std::string& out) const {
  out += stem_;
  out += "{\"index\":";
  out += std::to_string(index);
  out += ",\"text\":\"";
  out += text;
}

void CompletionStreamEncoder::Finish(int32_t index, pb::FinishReason reason, std::string& out) {
  choices_[static_cast<size_t>(index)].finished = true;
  BeginChunk(index, {}, out);
  out += "\",\"logprobs\":null,\"finish_reason\":\"";
  out += CompletionFinishReason(reason);
  out += "\"}";
  out += tail_;
}

void CompletionStreamEncoder::OnDelta(const pb::Delta& delta, std::string& out) {
  // Clients fail on an index that they did not request.
  if (delta.choice() < 0 || static_cast<size_t>(delta.choice()) >= choices_.size()) return;
  Choice& choice = choices_[static_cast<size_t>(delta.choice())];
  if (choice.finished) return;
  const bool logprobs =
      !delta.logprobs_json().empty() && choice.logprobs.Add(delta.logprobs_json());
  if (logprobs || !delta.content_json().empty()) {
    BeginChunk(delta.choice(), delta.content_json(), out);
    if (logprobs) {
      out += "\",\"logprobs\":";
      choice.logprobs.Take(out);
      out += ",\"finish_reason\":null}";
      out += tail_;
    } else {
      out += text_tail_;
    }
  }
  if (delta.finish_reason() != pb::FINISH_REASON_UNSPECIFIED) {
    Finish(delta.choice(), delta.finish_reason(), out);
  }
}

void CompletionStreamEncoder::OnEnd(const pb::End& end, std::string& out) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (!choices_[i].finished) Finish(static_cast<int32_t>(i), DefaultFinishReason(end), out);
  }
  if (include_usage_) {
    out += stem_;
    out += "],\"usage\":";
    AppendCompletionUsage(out, end.usage(), cost_.Members(end));
    out += "}\n\n";
  }
  out += "data: [DONE]\n\n";
}

}  // namespace

std::unique_ptr<StreamEncoder> MakeCompletionStreamEncoder(const CanonicalRequest& request,
                                                           const ResponseStamp& stamp) {
  return std::make_unique<CompletionStreamEncoder>(request, stamp);
}

}  // namespace tollgate::gateway
