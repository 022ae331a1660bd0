#include "services/billing/domain/candidate.h"

#include <algorithm>

#include "services/billing/domain/batch.h"

namespace tollgate::billing {
namespace {

bool IsRate(int64_t pico_usd) { return pico_usd >= 0 && pico_usd <= kMaxRatePicoUsd; }

}  // namespace

bool IsValid(const Candidate& candidate) {
  return IsTokenCount(candidate.prompt_bound) && IsTokenCount(candidate.output_bound) &&
         IsRate(candidate.rates.input_pico_usd) && IsRate(candidate.rates.output_pico_usd) &&
         candidate.model.size() <= 256;
}

int64_t NeededNanoUsd(const Candidate& candidate, int64_t output_tokens) {
  return HoldNanoUsd(CostPicoUsd(candidate.rates, candidate.prompt_bound,
                                 std::min(candidate.output_bound, output_tokens)));
}

}  // namespace tollgate::billing
