// What every surface turns its requests into: the chat-completions members that the engine will
// get, as bytes, and the typed fields that the pipeline decides on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::gateway {

// Whatever a surface has to remember of its request until the answer, for example the fields that
// the responses surface echoes.
struct SurfaceState {
  virtual ~SurfaceState() = default;
};

// How large the prompt is, as far as anyone can tell without its tokenizer (reliability.md 1.4).
struct PromptSize {
  // Bytes of all text that the chat template can see, tool definitions included. Escapes count as
  // they were written, which is never less than what they stand for.
  int64_t text_bytes = 0;
  int64_t messages = 0;
  // Images and other parts that are not text.
  int64_t media_parts = 0;
  // Token ids, which are counted exactly; of all prompts, and of the longest one.
  int64_t tokens = 0;
  int64_t longest_tokens = 0;
  // Prompts that stand side by side, each with a window of its own.
  int64_t prompts = 1;
};

struct CanonicalRequest {
  inference::v1::RequestKind kind = inference::v1::REQUEST_KIND_CHAT;
  // As the caller wrote it; also the model that answers name.
  std::string model;
  bool stream = false;
  // The caller wants the usage chunk at the end of a stream.
  bool include_usage = false;
  // As in inference.proto: members without braces, without nulls, without those that the router
  // sets.
  std::string members_json;
  // As the caller sent it, and the field that it stood in.
  std::optional<int64_t> max_tokens;
  std::string_view max_tokens_field = "max_tokens";
  // Answers that the caller gets.
  int32_t choices = 1;
  // Answers that the engine may generate for it; the output bound is multiplied by it.
  int32_t samples = 1;
  PromptSize prompt;
  // The field that carries the prompt: at fault when a text-only model gets an image (decisions.md
  // 34), and when the prompt alone does not fit.
  std::string_view prompt_field = "messages";
  bool has_tools = false;
  // What the choices say when nothing is generated (max_tokens: 0): the prompts that a completion
  // echoes, each the inside of a JSON literal. Usually empty.
  std::vector<std::string> echo_json;
  std::shared_ptr<SurfaceState> state;
};

}  // namespace tollgate::gateway
