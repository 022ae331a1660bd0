#include "gateway/surfaces/completions/request.h"

#include <algorithm>

#include "common/base/try.h"
#include "gateway/surfaces/shared/request_members.h"
#include "gateway/surfaces/shared/text_inputs.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldAction;

// The routers have the same limit (inference.proto).
constexpr int64_t kMaxChoices = 128;
// Default of the public API.
constexpr int64_t kDefaultMaxTokens = 16;

// Members that are neither in this table nor in the shared one (engine_fields.h) are forwarded
// unchanged (decision 17).
constexpr FieldRule kCompletionsRules[] = {
    // Read by the surface.
    {"model", kString, kConsume},
    {"prompt", kAny, kConsume},
    {"stream", kBool, kConsume},
    {"stream_options", kObject, kConsume},
    {"max_tokens", kInteger, kConsume, 0},
    // Checked and forwarded.
    {"n", kInteger, kForward, 1, kMaxChoices},
    {"best_of", kInteger, kForward, 1, kMaxChoices},
    {"echo", kBool, kForward},
    {"logprobs", kInteger, kForward, 0, 5},
    {"suffix", kString, kForward},
    // Members of chat completions that an engine would prefer to max_tokens and prompt.
    {"max_completion_tokens", kAny, kDrop},
    {"messages", kAny, kDrop},
};

class CompletionsReader {
 public:
  explicit CompletionsReader(const json::Document& body)
      : root_(body.root()), writer_(body.text()) {}

  Result<CanonicalRequest> Read();

 private:
  Result<void> CountChoices(const TextInputs& prompts);
  void PrepareEcho(const TextInputs& prompts);

  json::Value root_;
  MemberWriter writer_;
  CanonicalRequest request_;
};

// The response has n choices per prompt. The engine may generate more (best_of).
Result<void> CompletionsReader::CountChoices(const TextInputs& prompts) {
  const int64_t n = root_.Find("n").Integer().value_or(1);
  const int64_t best_of = root_.Find("best_of").Integer().value_or(n);
  if (best_of < n) return BadRequest("'best_of' must not be below 'n'.", "best_of");
  if (best_of > n && request_.stream) {
    return BadRequest("'best_of' above 'n' cannot be streamed.", "best_of");
  }
  const int64_t choices = prompts.size.prompts * n;
  if (choices > kMaxChoices) {
    return BadRequest("The number of prompts times 'n' may be at most " +
                          std::to_string(kMaxChoices) + ", not " + std::to_string(choices) + ".",
                      n > 1 ? "n" : "prompt");
  }
  request_.choices = static_cast<int32_t>(choices);
  request_.samples = static_cast<int32_t>(prompts.size.prompts * best_of);
  return {};
}

// With max_tokens: 0 nothing is generated (decision 30), but text prompts can still be echoed.
void CompletionsReader::PrepareEcho(const TextInputs& prompts) {
  if (request_.max_tokens != 0 || !root_.Find("echo").boolean()) return;
  const int64_t n = request_.choices / prompts.size.prompts;
  for (const std::string_view text : prompts.texts) {
    request_.echo_json.insert(request_.echo_json.end(), static_cast<size_t>(n), std::string(text));
  }
}

Result<CanonicalRequest> CompletionsReader::Read() {
  request_.kind = inference::v1::REQUEST_KIND_COMPLETION;
  request_.prompt_field = "prompt";
  TRY(auto model, ReadModel(root_));
  request_.model = std::move(model);
  const json::Value prompt = root_.Find("prompt");
  TRY(auto prompts, ReadTextInputs(prompt, {.name = "prompt", .max_inputs = kMaxChoices}));
  writer_.Add("prompt", prompt.raw());
  request_.prompt = prompts.size;
  TRY(ReadMembers(root_, kCompletionsRules, writer_, request_));
  request_.stream = root_.Find("stream").boolean();
  TRY(const auto usage, ReadIncludeUsage(root_));
  request_.include_usage = usage;
  TRY(CountChoices(prompts));
  request_.max_tokens = root_.Find("max_tokens").Integer().value_or(kDefaultMaxTokens);
  PrepareEcho(prompts);
  // The suffix is part of every prompt.
  request_.prompt.text_bytes +=
      static_cast<int64_t>(root_.Find("suffix").raw_string().size()) * request_.prompt.prompts;
  request_.members_json = writer_.Take();
  return std::move(request_);
}

}  // namespace

Result<CanonicalRequest> ParseCompletionRequest(const json::Document& body) {
  return CompletionsReader(body).Read();
}

}  // namespace tollgate::gateway
