// A small valid catalog and variants of it.
#pragma once

#include <string>

namespace tollgate::catalog {

inline const std::string kGoodCatalog = R"(models:
  - id: acme/large
    name: Acme Large
    context_window: 131072
    max_output_tokens: 65536
    input_usd_per_million: "0.15"
    output_usd_per_million: "2.2"
    capabilities: [chat, tools, reasoning]
    documentation_url: https://example.com/large
    created: 2026-01-31
    pool: main
  - id: acme/small
    context_window: 8192
    input_usd_per_million: "0"
    output_usd_per_million: "0.000001"
    capabilities: [completion]
    pool: main
    workspace: team-a
    suspended: true
    engine_model: small-q4
pools:
  - name: main
    engines:
      - id: engine-1
        kind: vllm
        base_url: http://127.0.0.1:8000
        max_concurrency: 64
      - id: engine-2
        kind: llamacpp
        base_url: https://gpu-2.internal:8443
        api_key: secret
)";

// The catalog with `from` replaced by `to`.
inline std::string CatalogWith(const std::string& from, const std::string& to) {
  std::string text = kGoodCatalog;
  const size_t at = text.find(from);
  if (at == std::string::npos) return "the sample catalog does not contain: " + from;
  return text.replace(at, from.size(), to);
}

}  // namespace tollgate::catalog
