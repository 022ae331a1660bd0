// The HTTP request an engine gets. The caller's prompt is spliced in as the bytes that came; it is
// not parsed again.
#pragma once

#include <string>
#include <string_view>

#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// The engine puts usage on every chunk when asked, for that chunk's choice (vLLM, SGLang).
bool ReportsUsageOnEveryChunk(catalog::v1::EngineKind kind);

// "/v1/chat/completions", "/v1/completions" or "/v1/embeddings".
std::string_view EnginePath(inference::v1::RequestKind kind);

std::string BuildEngineBody(const inference::v1::GenerateRequest& request,
                            catalog::v1::EngineKind kind, std::string_view engine_model);

}  // namespace tollgate::inference_router
