#include "services/inference_router/engine/context_length.h"

#include <gtest/gtest.h>

#include <set>

namespace tollgate::inference_router {
namespace {

using Number = std::optional<int64_t>;

struct Form {
  const char* id;
  const char* text;
  Number limit, prompt, output, total;
};

const Number none;
const Form kForms[] = {
    {"vllm-total",
     "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 "
     "in "
     "the messages, 1000 in the completion). Please reduce the length of the messages or "
     "completion.",
     4096, 4000, 1000, 5000},
    {"vllm-total",
     "This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 "
     "tokens (150000 of text input, 50000 in the output).",
     131072, 150000, 50000, 200000},
    {"vllm-total",
     "This model's maximum context length is 2048 tokens, however you requested 2500 tokens (2400 "
     "in "
     "your prompt; 100 for the completion).",
     2048, 2400, 100, 2500},
    {"vllm-your-request",
     "'max_tokens' … This model's maximum context length is 32768 tokens. However, your request "
     "has "
     "40000 input tokens. Please reduce the length of the input messages.",
     32768, 40000, none, none},
    {"vllm-too-large",
     "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context "
     "length is "
     "8192 tokens and your request has 20 input tokens (9000 > 8192 - 20).",
     8192, 20, 9000, none},
    {"vllm-at-least",
     "This model's maximum context length is 8192 tokens. However, you requested 100 output tokens "
     "and "
     "your prompt contains at least 8093 input tokens, for a total of at least 8193 tokens.",
     8192, 8093, 100, 8193},
    {"vllm-chars",
     "This model's maximum context length is 8192 tokens. However, you requested 0 output tokens "
     "and your "
     "prompt contains 999999 characters (more than …).",
     8192, none, 0, none},
    {"vllm-you-passed",
     "You passed 8000 input tokens and requested 500 output tokens. However, the model's context "
     "length "
     "is only 8192 tokens, resulting in …",
     8192, 8000, 500, none},
    {"vllm-you-passed-chars",
     "You passed 90000 input characters and requested 500 output tokens. However, the model's "
     "context "
     "length is only 8192 tokens",
     8192, none, 500, none},
    {"vllm-decoder-prompt",
     "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure "
     "…",
     4096, 5000, none, none},
    {"vllm-but-prompt",
     "The model's maximum context length is 4096 tokens, but the prompt contains 5000 input tokens",
     4096, 5000, none, none},
    {"vllm-v0", "Input prompt (5000 tokens) is too long and exceeds limit of 4096", 4096, 5000,
     none, none},
    {"vllm-negative", "max_tokens must be at least 1, got -87.", none, none, none, none},
    {"vllm-output-gt-window",
     "max_tokens=9000 cannot be greater than max_model_len=max_total_tokens=8192.", 8192, none,
     9000, none},
    {"sglang-input",
     "The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000,
     none, none},
    {"sglang-total",
     "Requested token count exceeds the model's maximum context length of 4096 tokens. You "
     "requested a "
     "total of 5000 tokens: 4500 tokens from the input messages and 500 tokens for the completion.",
     4096, 4500, 500, 5000},
    {"sglang-max-allowed",
     "Input length (5000 tokens) exceeds the maximum allowed length (4090 tokens). Use a shorter "
     "input…",
     4090, 5000, none, none},
    {"sglang-kv",
     "The request needs more tokens than the KV cache can hold (input_tokens=10, "
     "max_new_tokens=20, "
     "required_tokens=30, kv_capacity=25)",
     25, 10, 20, 30},
    {"input-length-exceeds", "input length 5000 exceeds maximum context length 4096", 4096, 5000,
     none, none},
    {"input-length-exceeds", "Input length 5000 exceeds the maximum allowed input length of 4096",
     4096, 5000, none, none},
    {"llamacpp-sizes",
     "request (5000 tokens) exceeds the available context size (4096 tokens), try …", 4096, 5000,
     none, none},
    {"llamacpp-plain",
     "the request exceeds the available context size. try increasing the context size", none, none,
     none, none},
    {"llamacpp-larger",
     "input (5000 tokens) is larger than the max context size (4096 tokens). skipping", 4096, 5000,
     none, none},
    {"llamacpp-batch",
     "input (600 tokens) is too large to process. increase the physical batch size (current batch "
     "size: 512)",
     512, 600, none, none},
    {"llamacpp-midway", "Context size has been exceeded.", none, none, none, none},
    {"llamacpppy", "Requested tokens (5000) exceed context window of 4096", 4096, 5000, none, none},
    {"ollama", "the input length exceeds the context length", none, none, none, none},
    {"tgi-total",
     "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 "
     "`inputs` "
     "tokens and 500 `max_new_tokens`",
     4096, 4000, 500, none},
    {"tgi-input", "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
     4095, 5000, none, none},
    {"tgi-output", "`max_new_tokens` must be <= 512. Given: 600", 512, none, 600, none},
    {"openai-resulted",
     "This model's maximum context length is 4097 tokens. However, your messages resulted in 5000 "
     "tokens.",
     4097, 5000, none, none},
    {"openai-window", "Your input exceeds the context window of this model.", none, none, none,
     none},
    {"anthropic-prompt", "prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000, none,
     none},
    {"anthropic-sum",
     "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease …",
     200000, 190000, 20000, none},
    {"fireworks", "The prompt is too long: 5000, model maximum context length: 4096", 4096, 5000,
     none, none},
    {"gemini",
     "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
     1048576, 1200000, none, none},
    {"xai", "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
     131072, 150000, none, none},
    {"cerebras", "Please reduce … Current length is 9000 while limit is 8192", 8192, 9000, none,
     none},
    {"lmstudio-keep",
     "The number of tokens to keep from the initial prompt is greater than the context length",
     none, none, none, none},
    {"lmstudio-keep", "the model is loaded with context length of only 4096 tokens", 4096, none,
     none, none},
    {"generic-reduce", "Please reduce the length of the messages or completion.", none, none, none,
     none},
};

TEST(ContextLength, RecognizesEveryFormAndItsNumbers) {
  std::set<std::string_view> seen;
  for (const Form& form : kForms) {
    auto found = MatchContextLength(form.text, 400);
    ASSERT_TRUE(found) << form.text;
    EXPECT_EQ(found->matched_by, form.id) << form.text;
    EXPECT_EQ(found->limit, form.limit) << form.text;
    EXPECT_EQ(found->prompt, form.prompt) << form.text;
    EXPECT_EQ(found->output, form.output) << form.text;
    EXPECT_EQ(found->total, form.total) << form.text;
    seen.insert(found->matched_by);
  }
  std::set<std::string_view> all;
  for (const auto& pattern : ContextLengthPatterns()) all.insert(pattern.id);
  EXPECT_EQ(all.size(), 37u);
  EXPECT_EQ(seen, all) << "every pattern needs an example";
}

TEST(ContextLength, OnlyWeakPatternsDependOnTheStatus) {
  const char* text = "Context size has been exceeded.";
  for (int status : {0, 400, 422, 500, 503})
    EXPECT_TRUE(MatchContextLength(text, status)) << status;
  const char* weak = "Please reduce the length of the messages or completion.";
  EXPECT_TRUE(MatchContextLength(weak, 413));
  EXPECT_FALSE(MatchContextLength(weak, 500));
  EXPECT_FALSE(MatchContextLength(weak, 0));
}

TEST(ContextLength, NearMissesDoNotMatch) {
  for (const char* text :
       {"", "this model supports at most 4096 completion tokens",
        "max_tokens must be at least 1, got 0",
        "Invalid 'user': string too long. Expected a string with maximum length 64",
        "max_tokens must be a positive integer", "The model is at its maximum capacity",
        "temperature must be between 0 and 2"}) {
    EXPECT_FALSE(MatchContextLength(text, 400)) << text;
  }
}

TEST(ContextLength, AHugeTextAndAHugeNumberAreHarmless) {
  EXPECT_FALSE(MatchContextLength(std::string(10'000'000, '('), 400));
  auto found = MatchContextLength(
      "request (99999999999999999999999 tokens) exceeds the available context size (4096 tokens)",
      400);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->prompt, none);
  EXPECT_EQ(found->limit, 4096);
}

TEST(ContextLengthMessage, HasThePhraseAndOnlyKnownNumbers) {
  TokenAccounting tokens;
  EXPECT_EQ(ContextLengthMessage(tokens), "The request is longer than the model's context window.");
  tokens.limit = 4096;
  EXPECT_EQ(ContextLengthMessage(tokens),
            "This model's maximum context length is 4096 tokens. Please shorten the prompt or ask "
            "for fewer output tokens.");
  EXPECT_NE(ContextLengthMessage(tokens, 5000).find("you requested 5000 tokens."),
            std::string::npos);
  tokens.prompt = 5000;
  EXPECT_EQ(
      ContextLengthMessage(tokens),
      "This model's maximum context length is 4096 tokens. However, your prompt has 5000 tokens. "
      "Please shorten the prompt or ask for fewer output tokens.");
  tokens.output = 100;
  EXPECT_EQ(
      ContextLengthMessage(tokens),
      "This model's maximum context length is 4096 tokens. However, you requested 5100 tokens "
      "(5000 in the prompt, 100 for the completion). Please shorten the prompt or ask for fewer "
      "output tokens.");
  tokens.prompt_is_lower_bound = true;
  EXPECT_NE(ContextLengthMessage(tokens).find("at least 5100 tokens (at least 5000 in"),
            std::string::npos);
}

TEST(AccountTokens, EveryFormKeepsItsNumbers) {
  for (const Form& form : kForms) {
    const auto found = MatchContextLength(form.text, 400);
    ASSERT_TRUE(found) << form.text;
    const TokenAccounting tokens = AccountTokens(*found, 0);
    const std::string_view id = form.id;
    const bool other_limit = id == "tgi-output" || id == "llamacpp-batch";
    EXPECT_EQ(tokens.limit, other_limit ? 0 : form.limit.value_or(0)) << form.text;
    EXPECT_EQ(tokens.prompt, form.prompt.value_or(0)) << form.text;
    EXPECT_EQ(tokens.output, form.output.value_or(0)) << form.text;
  }
}

TEST(AccountTokens, MissingNumbersAreDerivedFromTheOthers) {
  EXPECT_EQ(AccountTokens({.prompt = 30, .total = 50}, 0).output, 20);
  EXPECT_EQ(AccountTokens({.output = 20, .total = 50}, 0).prompt, 30);
  EXPECT_EQ(AccountTokens({.total = 50}, 0).prompt, 0);
}

TEST(AccountTokens, TheCatalogsWindowReplacesAMissingLimitIfPlausible) {
  EXPECT_EQ(AccountTokens({}, 4096).limit, 4096);
  EXPECT_EQ(AccountTokens({.prompt = 5000}, 4096).limit, 4096);
  EXPECT_EQ(AccountTokens({.prompt = 4000, .output = 97}, 4096).limit, 4096);
  EXPECT_EQ(AccountTokens({.total = 5000}, 4096).limit, 4096);
  // The engine's window is smaller than the catalog's, and the engine does not state it.
  EXPECT_EQ(AccountTokens({.prompt = 4000}, 4096).limit, 0);
  EXPECT_EQ(AccountTokens({.limit = 2048, .prompt = 4000}, 4096).limit, 2048);
}

}  // namespace
}  // namespace tollgate::inference_router
