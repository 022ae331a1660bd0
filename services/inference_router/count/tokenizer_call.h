// The engines' tokenizer endpoints, each in its own dialect. Pure. spec: wire.md 10.3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::inference_router {

// A POST to an engine. The target stands below the engine's base path.
struct TokenizerCall {
  std::string target;
  std::string body;
};

// Whether engines of this kind have a tokenizer to ask. ENGINE_KIND_OPENAI may: many speak vLLM's
// dialect, and the others answer 404.
bool MayTokenize(catalog::v1::EngineKind kind);

// Counts a chat, members being those of GenerateRequest. Of llama.cpp it applies the template only:
// ReadTemplated gives the prompt for PromptCall.
TokenizerCall ChatCall(catalog::v1::EngineKind kind, std::string_view engine_model,
                       std::string_view members);
bool NeedsTemplateFirst(catalog::v1::EngineKind kind);

// Counts one prompt, given as a JSON string literal, as /v1/completions would.
TokenizerCall PromptCall(catalog::v1::EngineKind kind, std::string_view engine_model,
                         std::string_view prompt_json);

// The count in the answer to a call. Empty when there is none.
std::optional<int64_t> ReadCount(catalog::v1::EngineKind kind, std::string_view body);
// The prompt in an answer of /apply-template, as a JSON string literal.
std::optional<std::string> ReadTemplated(std::string_view body);

// What a completion's `prompt` consists of.
struct Prompts {
  // Tokens that were given as ids: they need no tokenizer.
  int64_t tokens = 0;
  // JSON string literals.
  std::vector<std::string> texts;
};
// Empty when the members hold no prompt of a known form.
std::optional<Prompts> ReadPrompts(std::string_view members);

}  // namespace tollgate::inference_router
