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

// The number of consecutive choices that answer one prompt: all of a chat, `n` of a completion with
// several prompts.
int ChoicesPerPrompt(const inference::v1::GenerateRequest& request);

// "/v1/chat/completions", "/v1/completions" or "/v1/embeddings".
std::string_view EnginePath(inference::v1::RequestKind kind);

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
