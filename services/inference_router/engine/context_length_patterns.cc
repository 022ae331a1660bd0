// Error texts of engines for a request that exceeds the model's context window
// (docs/design/wire.md 11). Ordered: the first match wins. Case-insensitive, RE2 syntax. Groups:
// limit, prompt, output, total, chars, deficit.
#include "services/inference_router/engine/context_length.h"

namespace tollgate::inference_router {
namespace {

// clang-format off
constexpr ContextLengthPattern kPatterns[] = {
    // OpenAI style: vLLM until mid 2025, DeepSeek, OpenRouter, llama-cpp-python
    {"vllm-total", false,
     R"re(maximum context length is (?P<limit>\d+) tokens[.,] however,? you requested (?:about )?(?P<total>\d+) tokens(?: \((?P<prompt>\d+) (?:in|of) [^,;)]*[,;] (?P<output>\d+) (?:in|for) [^)]*\))?)re"},
    // vLLM, mid 2025 to early 2026
    {"vllm-your-request", false,
     R"re(maximum context length is (?P<limit>\d+) tokens\. however, your request has (?P<prompt>\d+) input tokens)re"},
    // vLLM, 2025 to early 2026
    {"vllm-too-large", false,
     R"re(is too large: (?P<output>\d+)\. this model's maximum context length is (?P<limit>\d+) tokens and your request has (?P<prompt>\d+) input tokens)re"},
    // vLLM, since about spring 2026
    {"vllm-at-least", false,
     R"re(maximum context length is (?P<limit>\d+) tokens\. however, you requested (?P<output>\d+) output tokens and your prompt contains (?:at least )?(?P<prompt>\d+) input tokens(?:, for a total of (?:at least )?(?P<total>\d+) tokens)?)re"},
    // vLLM, since about spring 2026
    {"vllm-chars", false,
     R"re(maximum context length is (?P<limit>\d+) tokens\. however, you requested (?P<output>\d+) output tokens and your prompt contains (?:at least )?(?P<chars>\d+) (?:input )?characters)re"},
    // vLLM, a few builds of early 2026
    {"vllm-you-passed", false,
     R"re(you passed (?P<prompt>\d+) input tokens and requested (?P<output>\d+) output tokens\. however, the model's context length is only (?P<limit>\d+) tokens)re"},
    // vLLM, a few builds of early 2026
    {"vllm-you-passed-chars", false,
     R"re(you passed (?P<chars>\d+) input characters and requested (?P<output>\d+) output tokens\. however, the model's context length is only (?P<limit>\d+) tokens)re"},
    // vLLM V1 core
    {"vllm-decoder-prompt", false,
     R"re(prompt \(length (?P<prompt>\d+)\) is longer than the maximum model length of (?P<limit>\d+))re"},
    // vLLM Rust front end
    {"vllm-but-prompt", false,
     R"re(maximum context length is (?P<limit>\d+) tokens, but the prompt contains (?P<prompt>\d+) input tokens)re"},
    // vLLM V0
    {"vllm-v0", false,
     R"re(input prompt \((?P<prompt>\d+) tokens\) is too long and exceeds limit of (?P<limit>\d+))re"},
    // vLLM, old
    {"vllm-negative", false,
     R"re(max_(?:completion_)?tokens must be at least 1, got (?P<deficit>-\d+))re"},
    // vLLM, since early 2026
    {"vllm-output-gt-window", false,
     R"re(max_(?:completion_|output_)?tokens=(?P<output>\d+) ?cannot be greater than \w+=(?:\w+=)?(?P<limit>\d+))re"},
    // sglang
    {"sglang-input", false,
     R"re(the input \((?P<prompt>\d+) tokens\) is longer than the model's context length \((?P<limit>\d+) tokens\))re"},
    // sglang
    {"sglang-total", false,
     R"re(exceeds the model's maximum context length of (?P<limit>\d+) tokens(?:\. you requested a total of (?P<total>\d+) tokens: (?P<prompt>\d+) tokens from the input messages and (?P<output>\d+) tokens for the completion)?)re"},
    // sglang scheduler
    {"sglang-max-allowed", false,
     R"re(input length \((?P<prompt>\d+) tokens\) exceeds the maximum allowed length \((?P<limit>\d+) tokens\))re"},
    // sglang (omni)
    {"sglang-kv", false,
     R"re(more tokens than [^(]*kv cache can hold \(input_tokens=(?P<prompt>\d+), max_new_tokens=(?P<output>\d+), required_tokens=(?P<total>\d+), kv_capacity=(?P<limit>\d+)\))re"},
    // several
    {"input-length-exceeds", false,
     R"re(input length \(?(?P<prompt>\d+)\)?(?: tokens)? exceeds (?:the |model's )?max(?:imum)? (?:context length|allowed input length|input length)(?: of)? \(?(?P<limit>\d+))re"},
    // llama.cpp >= late 2025
    {"llamacpp-sizes", false,
     R"re(request \((?P<prompt>\d+) tokens\) exceeds the available context size \((?P<limit>\d+) tokens\))re"},
    // llama.cpp
    {"llamacpp-plain", false,
     R"re(request exceeds the available context size)re"},
    // llama.cpp
    {"llamacpp-larger", false,
     R"re(input (?:\((?P<prompt>\d+) tokens\) )?is larger than the max context size(?: \((?P<limit>\d+) tokens\))?)re"},
    // llama.cpp embeddings
    {"llamacpp-batch", false,
     R"re(input (?:\((?P<prompt>\d+) tokens\) )?is too large to process\. increase the physical batch size(?: \(current batch size: (?P<limit>\d+)\))?)re"},
    // llama.cpp, mid generation
    {"llamacpp-midway", false,
     R"re(context size has been exceeded)re"},
    // llama-cpp-python
    {"llamacpppy", false,
     R"re(requested tokens \((?P<prompt>\d+)\) exceed context window of (?P<limit>\d+))re"},
    // ollama
    {"ollama", false,
     R"re((?:prompt is longer than the|input length exceeds the|input exceeds maximum|input after truncation exceeds maximum) context length)re"},
    // TGI
    {"tgi-total", false,
     R"re(`inputs` tokens \+ `max_new_tokens` must be <= (?P<limit>\d+)\. given: (?P<prompt>\d+) `inputs` tokens and (?P<output>\d+) `max_new_tokens`)re"},
    // TGI
    {"tgi-input", false,
     R"re(`inputs` must have less than (?P<limit>\d+) tokens\. given: (?P<prompt>\d+))re"},
    // TGI
    {"tgi-output", false,
     R"re(`max_new_tokens` must be <= (?P<limit>\d+)\. given: (?P<output>\d+))re"},
    // OpenAI chat
    {"openai-resulted", false,
     R"re(maximum context length is (?P<limit>\d+) tokens\. however, your messages resulted in (?P<prompt>\d+) tokens)re"},
    // OpenAI responses
    {"openai-window", false,
     R"re(input exceeds the context window)re"},
    // Anthropic
    {"anthropic-prompt", false,
     R"re(prompt is too long: (?P<prompt>\d+) tokens > (?P<limit>\d+) maximum)re"},
    // Anthropic
    {"anthropic-sum", false,
     R"re(input length and `max_tokens` exceed context limit: (?P<prompt>\d+) \+ (?P<output>\d+) > (?P<limit>\d+))re"},
    // Fireworks
    {"fireworks", false,
     R"re(prompt is too long: (?P<prompt>\d+), model maximum context length: (?P<limit>\d+))re"},
    // Gemini
    {"gemini", false,
     R"re(input token count \((?P<prompt>\d+)\) exceeds the maximum number of tokens allowed \((?P<limit>\d+)\))re"},
    // xAI
    {"xai", false,
     R"re(maximum prompt length is (?P<limit>\d+) but the request contains (?P<prompt>\d+) tokens)re"},
    // Cerebras
    {"cerebras", false,
     R"re(current length is (?P<prompt>\d+) while limit is (?P<limit>\d+))re"},
    // LM Studio
    {"lmstudio-keep", false,
     R"re(tokens to keep from the initial prompt is greater than the context length|loaded with context length of only (?P<limit>\d+) tokens)re"},
    // Groq and others
    {"generic-reduce", true,
     R"re(please reduce the length of the messages or completion)re"},
};
// clang-format on

}  // namespace

std::span<const ContextLengthPattern> ContextLengthPatterns() { return kPatterns; }

}  // namespace tollgate::inference_router
