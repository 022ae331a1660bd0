// Requests to the engines' tokenizer endpoints, in the dialect of each engine, and their responses.
// Pure. See docs/design/wire.md 10.3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// A POST to an engine. The target is relative to the engine's base path.
struct TokenizerCall {
  std::string target;
  std::string body;
};

// Both only for kinds with a tokenizer.

// Counts a chat. members and reasoning are as in GenerateRequest. For llama.cpp this call only
// applies the chat template: ReadTemplated returns the prompt for PromptCall.
TokenizerCall ChatCall(catalog::v1::EngineKind kind, std::string_view engine_model,
                       std::string_view members, const inference::v1::Reasoning& reasoning);

// Counts one prompt, given as a JSON string literal, like /v1/completions.
TokenizerCall PromptCall(catalog::v1::EngineKind kind, std::string_view engine_model,
                         std::string_view prompt_json);

// Reads the count from the response to a call; empty if there is none.
std::optional<int64_t> ReadCount(catalog::v1::EngineKind kind, std::string_view body);
// Reads the prompt from a response of /apply-template, as a JSON string literal.
std::optional<std::string> ReadTemplated(std::string_view body);

// The parts of a completion's `prompt` or an embedding's `input`.
struct Prompts {
  // Prompts given as token ids, which need no tokenizer: tokens of all lists, and of the longest.
  int64_t tokens = 0;
  int64_t longest_tokens = 0;
  // JSON string literals.
  std::vector<std::string> texts;
};
// Empty if the members have no prompt of a known form. If there are several prompts, texts that
// cannot have more tokens than only_above are omitted; 0: none are.
std::optional<Prompts> ReadPrompts(inference::v1::RequestKind kind, std::string_view members,
                                   int64_t only_above = 0);

}  // namespace tollgate::inference_router
