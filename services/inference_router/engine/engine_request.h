// The body and path of the HTTP request to an engine. The client's prompt is inserted as the bytes
// received; it is not parsed again.
#pragma once

#include <string>
#include <string_view>

#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// The engine can report usage on every chunk, for the choice of that chunk (vLLM, SGLang).
bool ReportsUsageOnEveryChunk(catalog::v1::EngineKind kind);

// "/v1/chat/completions", "/v1/completions" or "/v1/embeddings".
std::string_view EnginePath(inference::v1::RequestKind kind);

std::string BuildEngineBody(const inference::v1::GenerateRequest& request,
                            catalog::v1::EngineKind kind, std::string_view engine_model);

}  // namespace tollgate::inference_router
