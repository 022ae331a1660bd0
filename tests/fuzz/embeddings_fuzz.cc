// Engine responses to an embedding request: every split of the bytes gives the same vectors, each
// input has at most one, and both public encodings of a vector carry the same bits.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/json/json.h"
#include "gateway/surfaces/embeddings/vectors.h"
#include "services/inference_router/engine/embedding_reader.h"
#include "tests/fuzz/fuzz.h"

namespace tollgate {
namespace {

constexpr int kInputs = 3;

struct Outcome {
  bool good = false;
  std::vector<std::pair<int, std::string>> vectors;
  bool operator==(const Outcome&) const = default;
};

Outcome Read(std::string_view input, bool cut) {
  inference_router::EmbeddingReader reader({.inputs = kInputs});
  fuzz::Cuts cuts(input);
  std::vector<inference::v1::Event> events;
  Outcome outcome{.good = true};
  for (size_t at = 0; at < input.size() && outcome.good;) {
    const size_t size = cut ? cuts.Next(input.size() - at) : input.size();
    outcome.good = reader.Feed(input.substr(at, size), events);
    at += size;
  }
  outcome.good = outcome.good && reader.End();
  for (const auto& event : events) {
    outcome.vectors.emplace_back(event.delta().choice(), event.delta().embedding_json());
  }
  return outcome;
}

std::string Form(const std::string& vector, gateway::VectorForm form) {
  std::string out;
  gateway::AppendVector(out, vector, form);
  return out;
}

}  // namespace
}  // namespace tollgate

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tollgate;
  using enum gateway::VectorForm;
  const std::string_view input = fuzz::Text(data, size);
  const Outcome outcome = Read(input, false);
  FUZZ_CHECK(outcome == Read(input, true));
  std::set<int> seen;
  for (const auto& [place, vector] : outcome.vectors) {
    FUZZ_CHECK(place >= 0 && place < kInputs && seen.insert(place).second);
    const std::string base64 = Form(vector, kBase64);
    const std::string numbers = Form(vector, kFloats);
    FUZZ_CHECK(json::Document::ParseView(base64).ok());
    FUZZ_CHECK(json::Document::ParseView(numbers).ok());
    FUZZ_CHECK(Form(Form(base64, kFloats), kBase64) == base64);
    FUZZ_CHECK(Form(numbers, kBase64) == base64);
  }
  if (outcome.good) FUZZ_CHECK(seen.size() == kInputs);
  return 0;
}
