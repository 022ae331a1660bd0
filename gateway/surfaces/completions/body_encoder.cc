#include <vector>

#include "gateway/surfaces/completions/encoders.h"
#include "gateway/surfaces/completions/logprobs.h"
#include "gateway/surfaces/completions/response_fields.h"
#include "gateway/surfaces/shared/answer_cost.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

class CompletionBodyEncoder : public BodyEncoder {
 public:
  CompletionBodyEncoder(const CanonicalRequest& request, const ResponseStamp& stamp)
      : head_(CompletionHead(request, stamp)),
        cost_(request),
        choices_(static_cast<size_t>(request.choices)) {}

  void OnDelta(const pb::Delta& delta) override;
  std::string Finish(const pb::End& end) override;

 private:
  struct Choice {
    std::string text;  // contents of a JSON string
    LegacyLogprobs logprobs;
    pb::FinishReason finish = pb::FINISH_REASON_UNSPECIFIED;
  };

  const std::string head_;
  const AnswerCost cost_;
  std::vector<Choice> choices_;
};

void CompletionBodyEncoder::OnDelta(const pb::Delta& delta) {
  if (delta.choice() < 0 || static_cast<size_t>(delta.choice()) >= choices_.size()) return;
  Choice& choice = choices_[static_cast<size_t>(delta.choice())];
  choice.text += delta.content_json();
  if (!delta.logprobs_json().empty()) choice.logprobs.Add(delta.logprobs_json());
  if (delta.finish_reason() != pb::FINISH_REASON_UNSPECIFIED) choice.finish = delta.finish_reason();
}

std::string CompletionBodyEncoder::Finish(const pb::End& end) {
  size_t size = head_.size() + 256;
  for (const Choice& choice : choices_) size += choice.text.size() + 128;
  std::string out;
  out.reserve(size);
  out += head_;
  for (size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    if (i > 0) out.push_back(',');
    out += "{\"index\":" + std::to_string(i) + ",\"text\":\"";
    out += choice.text;
    out += "\",\"logprobs\":";
    choice.logprobs.Take(out);
    out += ",\"finish_reason\":\"";
    out += CompletionFinishReason(
        choice.finish == pb::FINISH_REASON_UNSPECIFIED ? DefaultFinishReason(end) : choice.finish);
    out += "\"}";
  }
  out += "],\"usage\":";
  AppendCompletionUsage(out, end.usage(), cost_.Members(end));
  out += "}";
  return out;
}

}  // namespace

std::unique_ptr<BodyEncoder> MakeCompletionBodyEncoder(const CanonicalRequest& request,
                                                       const ResponseStamp& stamp) {
  return std::make_unique<CompletionBodyEncoder>(request, stamp);
}

}  // namespace tollgate::gateway
