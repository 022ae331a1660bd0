// The request format that every surface translates to: the members for the engine, as JSON bytes,
// and the typed fields that the pipeline needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/money/money.h"
#include "gateway/worker/reasoning_keys.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::gateway {

// Properties of the requested model that affect the translation.
struct ModelTraits {
  // System messages go to the engine where the client put them (decision 39).
  bool keeps_system_messages = false;
  // The model's engines accept a bound on the reasoning tokens (docs/design/wire.md 2.6).
  bool bounds_reasoning = false;
};

// Everything besides the body that a translation depends on. May be used on another thread.
struct ParseContext {
  // Returns the traits of a model by its id, and the defaults for an unknown id. May be empty.
  std::function<ModelTraits(const std::string& model)> traits_of;
  // The caller's workspace.
  std::string workspace;
  // Null: reasoning is neither sealed nor unsealed.
  std::shared_ptr<const ReasoningKeys> reasoning_keys;
  // Unix time in seconds.
  int64_t now_s = 0;

  ModelTraits TraitsOf(const std::string& model) const {
    return traits_of ? traits_of(model) : ModelTraits();
  }
};

// Data of the request that a surface keeps for its response, for example the fields that the
// responses surface echoes.
struct SurfaceState {
  virtual ~SurfaceState() = default;
};

// The size of the prompt as measured without a tokenizer (docs/design/ledger.md 4).
struct PromptSize {
  // Bytes of all text that the chat template can see, tool definitions included. Escape sequences
  // count at their escaped length, which is an upper bound.
  int64_t text_bytes = 0;
  int64_t messages = 0;
  // Images and other parts that are not text.
  int64_t media_parts = 0;
  // Prompts given as token ids: their exact sum, and the longest one.
  int64_t tokens = 0;
  int64_t longest_tokens = 0;
  // Prompts given as several texts (completions, embeddings): the bytes of the longest.
  int64_t longest_text_bytes = 0;
  // Number of independent prompts, each with a context window of its own.
  int64_t prompts = 1;
};

// A further model that may answer, and the member that names it, for example `models[1]`.
struct FallbackChoice {
  std::string id;
  std::string member;
};

// The caller's terms for the model that answers: the member `provider` (docs/design/wire.md 2.7).
struct ProviderTerms {
  // False: only the first model is tried.
  bool allow_fallbacks = true;
  // Restricts the request to models that support all its parameters.
  bool require_parameters = false;
  // The member that restricts the request to models whose engines keep neither prompts nor answers.
  // Empty: no restriction.
  std::string_view no_retention;
  // The highest price per prompt token and per output token; empty: any price.
  std::optional<int64_t> max_input_pico_usd, max_output_pico_usd;
  // Names of providers, in any case; empty: not given.
  std::vector<std::string> order, only, ignore;
};

struct CanonicalRequest {
  inference::v1::RequestKind kind = inference::v1::REQUEST_KIND_CHAT;
  // As sent by the client; responses echo it. If another model answers, the id of that model.
  std::string model;
  // The member that contained `model`: `model` or an item of `models`.
  std::string model_member;
  // The models to try afterwards, in order, without duplicates: at most 7.
  std::vector<FallbackChoice> fallbacks;
  ProviderTerms provider;
  // Set with require_parameters: the names of the request's parameters. Uses the names of
  // `supported_parameters` in the model list where they exist.
  std::vector<std::string> parameters;
  bool stream = false;
  // The stream ends with a usage chunk.
  bool include_usage = false;
  // The answer's usage includes its cost.
  bool include_cost = false;
  // The model's price per token, for the cost; zero for a free answer.
  Rates rates;
  // Members for the engine as in inference.proto: without braces, nulls, and members that the
  // router sets.
  std::string members_json;
  // As sent by the client, with the name of the field.
  std::optional<int64_t> max_tokens;
  std::string_view max_tokens_field = "max_tokens";
  // Number of choices in the response.
  int32_t choices = 1;
  // Number of completions that the engine generates (best_of); multiplies the output bound.
  int32_t samples = 1;
  PromptSize prompt;
  // Hosts of the https: URLs in the prompt, in lower case.
  std::set<std::string> media_hosts;
  // The member with which the client runs a template on the engine; empty: none (decision 45).
  std::string_view template_member;
  // The client's own salt for the engine's prefix cache; empty: none.
  std::string cache_salt;
  // The client's name of its session (session_name.h); empty: none.
  std::string session;
  // The field with the prompt: the param of errors about images for a text-only model (decision 34)
  // and about a prompt that does not fit.
  std::string_view prompt_field = "messages";
  bool has_tools = false;
  // The reasoning settings that the caller asked for.
  inference::v1::Reasoning reasoning;
  // Limit on the reasoning tokens, for engines that enforce one; 0: none.
  int64_t reasoning_budget = 0;
  // The answer omits its reasoning text, which is still counted and charged.
  bool hides_reasoning = false;
  // For `max_tokens: 0` with `echo`: the text of each choice, as the contents of a JSON string.
  std::vector<std::string> echo_json;
  std::shared_ptr<SurfaceState> state;
  // SHA-256 of path and raw body (IdempotencyBodyDigest); empty without an Idempotency-Key.
  std::string body_digest;
};

// Whether the request must carry reasoning settings to the engine.
inline bool SaysReasoning(const CanonicalRequest& request) {
  return request.reasoning.thinking() != inference::v1::REASONING_SWITCH_UNSPECIFIED ||
         !request.reasoning.effort().empty();
}

}  // namespace tollgate::gateway
