// A model that may answer a request, with the price and token bounds there (decision 66).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/money/money.h"

namespace tollgate::billing {

// Maximum number of candidates of one request.
inline constexpr size_t kMaxCandidates = 8;

struct Candidate {
  std::string model;
  Rates rates;
  int64_t price_version = 0;
  int64_t prompt_bound = 0;  // tokens, at most
  int64_t output_bound = 0;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

// Whether name, rates and bounds are within what the ledger can count.
bool IsValid(const Candidate& candidate);
// Amount to hold for the whole prompt and this much output, limited to the candidate's bound.
int64_t NeededNanoUsd(const Candidate& candidate, int64_t output_tokens);

}  // namespace tollgate::billing
