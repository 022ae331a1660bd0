#include "services/billing/storage/candidates.h"

#include "common/json/writer.h"

namespace tollgate::billing {

std::string EncodeCandidates(const std::vector<Candidate>& candidates) {
  if (candidates.empty()) return "";
  return json::WriteArray(candidates, [](const Candidate& candidate) {
    return json::Writer()
        .Text("model", candidate.model)
        .Number("input_pico", candidate.rates.input_pico_usd)
        .Number("output_pico", candidate.rates.output_pico_usd)
        .Number("price_version", candidate.price_version)
        .Number("prompt_bound", candidate.prompt_bound)
        .Number("output_bound", candidate.output_bound)
        .Done();
  });
}

std::vector<Candidate> DecodeCandidates(std::string_view text) {
  std::vector<Candidate> candidates;
  if (text.empty()) return candidates;
  const auto document = json::Document::ParseView(text);
  if (!document) return candidates;
  for (const json::Value one : document->root()) {
    const auto number = [&](std::string_view name) {
      return one.Find(name).Integer().value_or(-1);
    };
    candidates.push_back({one.Find("model").string(),
                          {number("input_pico"), number("output_pico")},
                          number("price_version"),
                          number("prompt_bound"),
                          number("output_bound")});
  }
  return candidates;
}

}  // namespace tollgate::billing
