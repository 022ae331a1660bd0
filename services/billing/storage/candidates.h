// The column `candidates` of holds: the models that may answer a request, with the price and token
// bounds of each (docs/design/ledger.md 3).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "services/billing/domain/types.h"

namespace tollgate::billing {

// Adds the columns candidates and candidate to the holds.
inline constexpr std::string_view kCandidateColumns = R"sql(
ALTER TABLE hold ADD COLUMN candidates {text} NOT NULL DEFAULT '';
ALTER TABLE hold ADD COLUMN candidate {int} NOT NULL DEFAULT 0;
)sql";

// A JSON array of objects; empty if there are no candidates.
std::string EncodeCandidates(const std::vector<Candidate>& candidates);
// Reads as much as possible of a text that EncodeCandidates has not written. The ledger's
// invariants and its verification then find that it differs from what the hold was granted for.
std::vector<Candidate> DecodeCandidates(std::string_view text);

}  // namespace tollgate::billing
