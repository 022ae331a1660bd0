// The tokenizer endpoints of the simulated engine, in the dialects of several engines. Pure. In
// every dialect a count equals the prompt_tokens of the same request.
#pragma once

#include <optional>
#include <string>

#include "tests/support/engine_sim.h"
#include "tests/support/json.h"

namespace tollgate::test {

struct SimTokenizerAnswer {
  int status = 200;
  std::string body;
};

// Empty when the dialect has no such endpoint.
std::optional<SimTokenizerAnswer> AnswerTokenizer(const EngineSimOptions& options,
                                                  const std::string& path, const Json& body);

// Tokens of the prompt of a chat, completion or tokenize body.
int64_t CountPrompt(const Json& body);

}  // namespace tollgate::test
