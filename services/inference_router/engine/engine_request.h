// The body and path of the HTTP request to an engine. The client's prompt is inserted as received,
// except for characters that the engine cannot take (engine_text.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "services/inference_router/engine/engine_text.h"
#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// Whether the engine can report usage on every chunk, for the choice of that chunk (vLLM, SGLang).
bool ReportsUsageOnEveryChunk(catalog::v1::EngineKind kind);

// Whether the engine reports the usage of each choice at its end, and never the total (llama.cpp).
// In a whole answer it reports only the first choice, so several choices are requested as a stream.
bool ReportsUsageOfEachChoice(catalog::v1::EngineKind kind);

// The number of consecutive choices that answer one prompt: all of a chat, `n` of a completion with
// several prompts.
int ChoicesPerPrompt(const inference::v1::GenerateRequest& request);

// "/v1/chat/completions", "/v1/completions" or "/v1/embeddings".
std::string_view EnginePath(inference::v1::RequestKind kind);

// Whether the engine has a member `cache_salt` that separates its prefix cache (vLLM since 0.9,
// SGLang since 0.5.3; older versions ignore it).
bool KnowsCacheSalt(catalog::v1::EngineKind kind);

// The member that limits the reasoning tokens (vLLM with a reasoning configuration, llama.cpp since
// spring 2026); empty: the kind has none.
std::string_view ReasoningBudgetMember(catalog::v1::EngineKind kind);

// A salt for this workspace and the caller's own salt, as hexadecimal text: the same on every
// router with this key, and different for every other pair. key may be empty.
std::string CacheSalt(std::string_view key, std::string_view workspace_id,
                      std::string_view own_salt);

// How an engine answers. Embeddings are always whole.
enum class EngineAnswer : uint8_t { kStreamed, kWhole };

// cache_salt: empty: not sent. fitter: belongs to this request; null: fitted texts are not reused.
std::string BuildEngineBody(const inference::v1::GenerateRequest& request,
                            catalog::v1::EngineKind kind, std::string_view engine_model,
                            EngineAnswer answer, std::string_view cache_salt = {},
                            TextFitter* fitter = nullptr);

}  // namespace tollgate::inference_router
