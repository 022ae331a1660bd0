#include "gateway/surfaces/embeddings/body_encoder.h"

#include <map>

#include "gateway/surfaces/embeddings/request.h"
#include "gateway/surfaces/embeddings/vectors.h"
#include "gateway/surfaces/shared/answer_cost.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

// Vectors are large, so each is written to the body immediately. Only vectors that arrive out of
// order are buffered.
class EmbeddingAnswer : public BodyEncoder {
 public:
  explicit EmbeddingAnswer(const CanonicalRequest& request)
      : model_(request.model),
        form_(static_cast<const EmbeddingState&>(*request.state).form),
        inputs_(request.choices),
        cost_(request),
        body_("{\"object\":\"list\",\"data\":[") {}

  void OnDelta(const pb::Delta& delta) override {
    if (delta.choice() < next_ || delta.choice() >= inputs_ || delta.embedding_json().empty()) {
      return;
    }
    if (delta.choice() > next_) {
      early_.emplace(delta.choice(), delta.embedding_json());
      return;
    }
    Write(delta.embedding_json());
    while (!early_.empty() && early_.begin()->first == next_) {
      Write(early_.begin()->second);
      early_.erase(early_.begin());
    }
  }

  std::string Finish(const pb::End& end) override {
    const std::string tokens = std::to_string(end.usage().prompt_tokens());
    body_ += "],\"model\":" + json::Quoted(model_) + ",\"usage\":{\"prompt_tokens\":" + tokens +
             ",\"total_tokens\":" + tokens + cost_.Members(end) + "}}";
    return std::move(body_);
  }

 private:
  void Write(const std::string& vector_json) {
    if (next_ > 0) body_.push_back(',');
    body_ += "{\"object\":\"embedding\",\"index\":" + std::to_string(next_) + ",\"embedding\":";
    AppendVector(body_, vector_json, form_);
    body_ += "}";
    ++next_;
  }

  const std::string model_;
  const VectorForm form_;
  const int32_t inputs_;
  const AnswerCost cost_;
  std::string body_;
  int32_t next_ = 0;  // the input whose vector is written next
  std::map<int32_t, std::string> early_;
};

}  // namespace

std::unique_ptr<BodyEncoder> MakeEmbeddingBodyEncoder(const CanonicalRequest& request,
                                                      const ResponseStamp&) {
  return std::make_unique<EmbeddingAnswer>(request);
}

}  // namespace tollgate::gateway
