// The kinds of engine: one row for each, with the facts that differ. Behaviour is where it is used:
// code asks for a fact of the row, not for the kind (docs/design/wire.md 10, ADR 0031).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::engines {

// A response of the engine's own API.
struct Version {
  std::string_view path;  // empty: the engine does not tell its version
  std::string_view member;
};

// Gauges of its metrics, at /metrics below the base path; empty: it has none. Some kinds serve them
// only if an option is set at their start (SGLang, llama.cpp).
struct LoadGauges {
  std::string_view running;
  std::string_view queued;
  std::string_view cache_use;
  std::string_view old_cache_use;  // the former name, which is used if the new one is missing

  constexpr bool any() const { return !running.empty(); }
};

// How a tokenizer's response states the number of tokens.
enum class TokenCount : uint8_t {
  kCountMember,   // {"count":3}
  kTokensMember,  // {"tokens":[1,2,3]}
  kArray,         // [{},{},{}], or in the member `tokenize_response`
};

struct Tokenizer {
  std::string_view chat_path;    // empty: the kind has no tokenizer endpoint
  std::string_view prompt_path;  // counts one prompt
  std::string_view prompt_member;
  // Further members of the request that counts a prompt, as JSON text.
  std::string_view prompt_options;
  bool prompt_names_model = true;
  TokenCount count = TokenCount::kCountMember;
  // chat_path only applies the chat template. Its response is the prompt for prompt_path.
  bool template_first = false;
  // Members that the chat template uses are accepted only in `chat_template_kwargs`, although the
  // chat endpoint accepts them next to the messages (vLLM).
  bool template_members_nested = false;

  constexpr bool any() const { return !chat_path.empty(); }
};

// How the engine is told whether and how much to reason (docs/design/wire.md 2.6).
enum class ReasoningControl : uint8_t {
  kEffort,        // the member `reasoning_effort`; "none" turns it off
  kOllamaEffort,  // the same member with fewer levels
  kTemplate,      // arguments of the chat template
  kNone,
};

struct Kind {
  catalog::v1::EngineKind value;
  // In the catalog file, in traces and in metrics.
  std::string_view name;
  std::string_view health_path;
  Version version;
  LoadGauges load;
  Tokenizer tokenizer;
  ReasoningControl reasoning = ReasoningControl::kEffort;
  // The member that limits the reasoning tokens (vLLM with a reasoning configuration, llama.cpp
  // since spring 2026); empty: the kind has none.
  std::string_view reasoning_budget_member;
  // Can report usage on every chunk, for the choice of that chunk (`continuous_usage_stats`).
  bool usage_on_chunks = false;
  // Reports the usage of each choice at its end, and never the total. In a whole answer it reports
  // only the first choice, so several choices are requested as a stream.
  bool usage_per_choice = false;
  // Has a member `cache_salt` that separates its prefix cache (vLLM since 0.9, SGLang since 0.5.3;
  // older versions ignore it).
  bool cache_salt = false;
  // Treats U+0000 like any other character: its texts are Python or Rust strings from the request
  // to the tokenizer. Other kinds store some texts as C strings and cut them there without an
  // error: llama.cpp with an image encoder did so until July 2026, and Ollama and many servers with
  // an OpenAI-compatible API are built on it.
  bool takes_nul = false;
  // Supports neither `json_schema` nor a bare `json_object` as `response_format`: it requires a
  // schema as `value`.
  bool schema_as_value = false;
};

// The row of a kind. A value that this build does not know has the row of ENGINE_KIND_UNSPECIFIED.
const Kind& Of(catalog::v1::EngineKind value);

// The rows of all kinds that a catalog may name.
std::span<const Kind> All();

// Null: no kind has this name.
const Kind* Find(std::string_view name);

}  // namespace tollgate::engines
