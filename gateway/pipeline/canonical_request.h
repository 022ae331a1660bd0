// The request format that every surface translates to: the members that the engine gets, as JSON
// bytes, and the typed fields that the pipeline needs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::gateway {

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
  // Number of independent prompts, each with a context window of its own.
  int64_t prompts = 1;
};

struct CanonicalRequest {
  inference::v1::RequestKind kind = inference::v1::REQUEST_KIND_CHAT;
  // As sent by the client; responses echo it.
  std::string model;
  bool stream = false;
  // The stream ends with a usage chunk.
  bool include_usage = false;
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
  // The field with the prompt: the param of an error about images for a text-only model
  // (decision 34) or about a prompt that does not fit.
  std::string_view prompt_field = "messages";
  bool has_tools = false;
  // For `max_tokens: 0` with `echo`: the text of each choice, as the contents of a JSON string.
  std::vector<std::string> echo_json;
  std::shared_ptr<SurfaceState> state;
  // SHA-256 of path and raw body (IdempotencyBodyDigest); empty without an Idempotency-Key.
  std::string body_digest;
};

}  // namespace tollgate::gateway
