// The simulated engine's text and token count: a vocabulary, the token rule, instances of JSON
// schemas. Pure functions of their arguments.
//
// The token rule: white space separates words and belongs to the word that follows it; a word
// longer than kMaxTokenBytes is cut into pieces of at most that many bytes (never inside a UTF-8
// character); every word or piece is one token. White space at the end belongs to the last token.
// /tokenize, usage and the stream (one token per chunk) all follow it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/json.h"

namespace tollgate::test {

inline constexpr size_t kMaxTokenBytes = 12;

int64_t CountTokens(std::string_view text);
// The tokens of the text, in order; joined they equal the text.
std::vector<std::string> SplitTokens(std::string_view text);

struct VocabularyToken {
  std::string text;
  std::string escaped;  // as the inside of a JSON string
};
// Token number `index` of the answer with this seed. One token by the rule above.
const VocabularyToken& GeneratedToken(uint64_t seed, int64_t index);

// A 64-bit hash for seeds; not collision-resistant.
uint64_t MixHash(std::string_view text, uint64_t seed);
uint64_t MixHash(uint64_t value, uint64_t seed);

// A value that satisfies the usual subset of JSON Schema (type, properties, items, enum, const,
// anyOf, local $ref). Unknown constructs give a string.
Json InstanceOfSchema(const Json& schema, uint64_t seed);

}  // namespace tollgate::test
