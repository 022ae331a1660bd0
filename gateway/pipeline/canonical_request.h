// The request format that every surface translates to: the members that the engine gets, as JSON
// bytes, and the typed fields that the pipeline needs.
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

// What the translation of a request depends on, of the model that it names.
struct ModelTraits {
  // System messages go to the engine where the client put them (decision 39).
  bool keeps_system_messages = false;
  // Its engines take a bound on the tokens of the reasoning (docs/design/wire.md 2.6).
  bool bounds_reasoning = false;
};

// What a translation depends on besides the body. May be used on another thread.
struct ParseContext {
  // The traits of a model by its id; those of an unknown one are the default. May be empty.
  std::function<ModelTraits(const std::string& model)> traits_of;
  // Of the caller.
  std::string workspace;
  // Null: reasoning is neither sealed nor unsealed.
  std::shared_ptr<const ReasoningKeys> reasoning_keys;
  // Unix time in seconds.
  int64_t now_s = 0;

  ModelTraits TraitsOf(const std::string& model) const {
    return traits_of ? traits_of(model) : ModelTraits();
  }
};

// What a surface keeps of the request for its response, for example the fields that the responses
// surface echoes.
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
  // Prompts given as texts beside each other (completions, embeddings): the bytes of the longest.
  int64_t longest_text_bytes = 0;
  // Number of independent prompts, each with a context window of its own.
  int64_t prompts = 1;
};

// Another model that may answer, and the member that names it, for example `models[1]`.
struct FallbackChoice {
  std::string id;
  std::string member;
};

// What the caller asks of whoever answers: the member `provider` (docs/design/wire.md 2.7).
struct ProviderTerms {
  // False: only the first model is asked.
  bool allow_fallbacks = true;
  // Only models that support every parameter of the request.
  bool require_parameters = false;
  // Only models whose engines keep neither prompts nor answers: the member that says so. Empty:
  // any.
  std::string_view no_retention;
  // The most per token of the prompt and of the answer; empty: any price.
  std::optional<int64_t> max_input_pico_usd, max_output_pico_usd;
  // Names of providers, in any case of letters; empty: nothing is said.
  std::vector<std::string> order, only, ignore;
};

struct CanonicalRequest {
  inference::v1::RequestKind kind = inference::v1::REQUEST_KIND_CHAT;
  // As sent by the client; responses echo it. When another model answers, its id.
  std::string model;
  // The member that names it: `model` or an item of `models`.
  std::string model_member;
  // The models to try after it, in order, without duplicates: at most 7.
  std::vector<FallbackChoice> fallbacks;
  ProviderTerms provider;
  // With require_parameters: the request's parameters, by their names in `supported_parameters` of
  // the model list where they have one.
  std::vector<std::string> parameters;
  bool stream = false;
  // The stream ends with a usage chunk.
  bool include_usage = false;
  // The answer's usage has its cost.
  bool include_cost = false;
  // Of the model, per token, for the cost; zero for an answer that is free.
  Rates rates;
  // Members for the engine, as in inference.proto: no braces, no nulls, none that the router sets.
  std::string members_json;
  // As sent by the client, and the name of the field.
  std::optional<int64_t> max_tokens;
  std::string_view max_tokens_field = "max_tokens";
  // Choices in the response.
  int32_t choices = 1;
  // Completions that the engine generates (best_of); multiplies the output bound.
  int32_t samples = 1;
  PromptSize prompt;
  // Hosts of the https: URLs in the prompt, in lower case.
  std::set<std::string> media_hosts;
  // A member by which the client runs a template on the engine; empty: none (decision 45).
  std::string_view template_member;
  // The client's own salt of the engine's prefix cache; empty: none.
  std::string cache_salt;
  // What the client names its session by (session_name.h); empty: nothing.
  std::string session;
  // The field with the prompt: the param of an error about images for a text-only model
  // (decision 34) or about a prompt that does not fit.
  std::string_view prompt_field = "messages";
  bool has_tools = false;
  // How much to reason, as the caller says it.
  inference::v1::Reasoning reasoning;
  // The most tokens that the reasoning may take, for engines that bound it; 0: no bound.
  int64_t reasoning_budget = 0;
  // The answer goes without its reasoning text, which is still counted and charged.
  bool hides_reasoning = false;
  // For `max_tokens: 0` with `echo`: the text of each choice, as the contents of a JSON string.
  std::vector<std::string> echo_json;
  std::shared_ptr<SurfaceState> state;
  // SHA-256 of path and raw body (IdempotencyBodyDigest); empty without an Idempotency-Key.
  std::string body_digest;
};

// Whether engines must be told how much to reason.
inline bool SaysReasoning(const CanonicalRequest& request) {
  return request.reasoning.thinking() != inference::v1::REASONING_SWITCH_UNSPECIFIED ||
         !request.reasoning.effort().empty();
}

}  // namespace tollgate::gateway
