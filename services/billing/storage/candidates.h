// The column `candidates` of holds: the models that may answer a request, with what it would cost
// at each of them (docs/design/ledger.md 3).
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

// A JSON array of objects; empty for none.
std::string EncodeCandidates(const std::vector<Candidate>& candidates);
// Of text that EncodeCandidates has not made: whatever can be read of it. The ledger's invariants
// and its verification then find that it is not what the hold was granted for.
std::vector<Candidate> DecodeCandidates(std::string_view text);

}  // namespace tollgate::billing
