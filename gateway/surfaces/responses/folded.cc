#include "gateway/surfaces/responses/answer.h"
#include "gateway/surfaces/responses/response_object.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

class ResponsesFoldedAnswer : public FoldedAnswer {
 public:
  ResponsesFoldedAnswer(const CanonicalRequest& request, const AnswerStamp& stamp)
      : response_(request, stamp), items_(request, stamp) {}

  void OnDelta(const pb::Delta& delta) override { items_.OnDelta(delta); }

  std::string Finish(const pb::End& end) override {
    const OutputItems::Outcome outcome = items_.Finish(end);
    std::string out;
    response_.AppendEnded(out, outcome, items_.Array(), end.usage());
    return out;
  }

 private:
  const ResponseObject response_;
  OutputItems items_;
};

}  // namespace

std::unique_ptr<FoldedAnswer> MakeResponsesFoldedAnswer(const CanonicalRequest& request,
                                                        const AnswerStamp& stamp) {
  return std::make_unique<ResponsesFoldedAnswer>(request, stamp);
}

}  // namespace tollgate::gateway
