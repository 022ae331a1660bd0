// The decoder of request bodies. The first byte selects the coding. The same bodies are accepted
// for every split of the bytes, within the limits, and what the encoders make decodes to the
// original. With two faults in a body, the reported one may depend on the split.
#include <algorithm>
#include <string>

#include "common/coding/body_decoder.h"
#include "common/coding/testing/encode.h"
#include "tests/fuzz/fuzz.h"

namespace tollgate::coding {
namespace {

using Status = BodyDecoder::Status;

constexpr DecodeLimits kLimits = {.max_bytes = 200'000, .max_ratio = 20, .ratio_from_bytes = 5'000};

struct Outcome {
  Status status = Status::kMore;
  std::string text;
};

Outcome Decode(Coding coding, std::string_view coded, size_t step) {
  BodyDecoder decoder(coding, coded, kLimits);
  Outcome outcome;
  for (size_t most = step; outcome.status == Status::kMore; most += step) {
    outcome.status = decoder.Decode(outcome.text, most);
    FUZZ_CHECK(outcome.text.size() <= std::min(most, kLimits.max_bytes));
  }
  return outcome;
}

}  // namespace
}  // namespace tollgate::coding

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tollgate::coding;
  if (size == 0) return 0;
  const Coding coding = static_cast<Coding>(data[0] % kCodings);
  const std::string_view bytes = tollgate::fuzz::Text(data + 1, size - 1);
  const Outcome whole = Decode(coding, bytes, 1 << 20);
  const Outcome stepwise = Decode(coding, bytes, 777);
  FUZZ_CHECK((whole.status == Status::kDone) == (stepwise.status == Status::kDone));
  if (whole.status == Status::kDone) FUZZ_CHECK(whole.text == stepwise.text);

  const std::string text(bytes);
  const Outcome back = Decode(coding, tollgate::coding::testing::Encode(coding, text), 1 << 20);
  const bool bounded = text.size() > kLimits.ratio_from_bytes || text.size() > kLimits.max_bytes;
  FUZZ_CHECK(bounded || (back.status == Status::kDone && back.text == text));
  return 0;
}
