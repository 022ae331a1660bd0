// The simulated engine's embeddings: generated vectors, the same for the same input. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/json.h"
#include "tests/support/sim_plan.h"

namespace tollgate::test {

// The reference for tests. `input` is one of InputsOf (sim_completions.h).
std::vector<float> EmbeddingOf(const Json& input, int64_t dimensions);
inline constexpr int64_t kEmbeddingDimensions = 64;

// Tokens of the input, with two special tokens around each text.
int64_t CountInput(const Json& body);

// The error of a request that is refused.
std::optional<SimError> CheckEmbedding(const Json& body, int64_t window);

// Response faults from x_sim: `embedding_format` ("float" or "base64", whatever was requested),
// `embedding_order` ("reversed"), `embedding_missing` (that many vectors).
std::string EmbeddingBody(const Json& body, const Json& script, const std::string& usage);

}  // namespace tollgate::test
