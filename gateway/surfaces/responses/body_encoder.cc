#include "gateway/surfaces/responses/encoders.h"
#include "gateway/surfaces/responses/response_object.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

class ResponsesBodyEncoder : public BodyEncoder {
 public:
  ResponsesBodyEncoder(const CanonicalRequest& request, const ResponseStamp& stamp)
      : response_(request, stamp), items_(request, stamp) {}

  void OnDelta(const pb::Delta& delta) override { items_.OnDelta(delta); }

  std::string Finish(const pb::End& end) override {
    const OutputItems::Outcome outcome = items_.Finish(end);
    std::string out;
    response_.AppendEnded(out, outcome, items_.Array(), end);
    return out;
  }

 private:
  const ResponseObject response_;
  OutputItems items_;
};

}  // namespace

std::unique_ptr<BodyEncoder> MakeResponsesBodyEncoder(const CanonicalRequest& request,
                                                      const ResponseStamp& stamp) {
  return std::make_unique<ResponsesBodyEncoder>(request, stamp);
}

}  // namespace tollgate::gateway
