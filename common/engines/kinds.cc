#include "common/engines/kinds.h"

#include <algorithm>
#include <array>

namespace tollgate::engines {
namespace {

using namespace catalog::v1;  // NOLINT: the values of the enum

constexpr Tokenizer kVllmTokenizer = {.chat_path = "/tokenize",
                                      .prompt_path = "/tokenize",
                                      .prompt_member = "prompt",
                                      .template_members_nested = true};

// In the order of the enum.
constexpr std::array<Kind, EngineKind_ARRAYSIZE> kKinds = {{
    {.value = ENGINE_KIND_UNSPECIFIED, .name = "unspecified", .health_path = "/health"},
    {.value = ENGINE_KIND_VLLM,
     .name = "vllm",
     .health_path = "/health",
     .version = {"/version", "version"},
     .load = {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
              "vllm:gpu_cache_usage_perc"},
     .tokenizer = kVllmTokenizer,
     .reasoning = ReasoningControl::kTemplate,
     .reasoning_budget_member = "thinking_token_budget",
     .usage_on_chunks = true,
     .cache_salt = true,
     .takes_nul = true},
    {.value = ENGINE_KIND_SGLANG,
     .name = "sglang",
     .health_path = "/health",
     .version = {"/get_server_info", "version"},
     .load = {"sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage"},
     .tokenizer = {.chat_path = "/tokenize", .prompt_path = "/tokenize", .prompt_member = "prompt"},
     .reasoning = ReasoningControl::kTemplate,
     .usage_on_chunks = true,
     .cache_salt = true,
     .takes_nul = true},
    {.value = ENGINE_KIND_LLAMACPP,
     .name = "llamacpp",
     .health_path = "/health",
     .version = {"/props", "build_info"},
     .load = {"llamacpp:requests_processing", "llamacpp:requests_deferred",
              "llamacpp:kv_cache_usage_ratio"},
     .tokenizer = {.chat_path = "/apply-template",
                   .prompt_path = "/tokenize",
                   .prompt_member = "content",
                   .prompt_options = R"(,"add_special":true,"parse_special":true)",
                   .prompt_names_model = false,
                   .count = TokenCount::kTokensMember,
                   .template_first = true},
     .reasoning = ReasoningControl::kTemplate,
     .reasoning_budget_member = "thinking_budget_tokens",
     .usage_per_choice = true},
    {.value = ENGINE_KIND_TGI,
     .name = "tgi",
     .health_path = "/health",
     .version = {"/info", "version"},
     .load = {"tgi_batch_current_size", "tgi_queue_size"},
     .tokenizer = {.chat_path = "/chat_tokenize",
                   .prompt_path = "/tokenize",
                   .prompt_member = "inputs",
                   .prompt_names_model = false,
                   .count = TokenCount::kArray},
     .reasoning = ReasoningControl::kNone,
     .takes_nul = true,
     .schema_as_value = true},
    {.value = ENGINE_KIND_OLLAMA,
     .name = "ollama",
     .health_path = "/api/version",
     .version = {"/api/version", "version"},
     .reasoning = ReasoningControl::kOllamaEffort},
    // Its tokenizer is tried as vLLM's. Engines without the endpoint answer 404.
    {.value = ENGINE_KIND_OPENAI,
     .name = "openai",
     .health_path = "/v1/models",
     .tokenizer = kVllmTokenizer},
}};

constexpr bool InOrderOfTheEnum() {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (static_cast<size_t>(kKinds[i].value) != i || kKinds[i].name.empty()) return false;
  }
  return true;
}
static_assert(InOrderOfTheEnum(), "each value of EngineKind has a row");

}  // namespace

const Kind& Of(catalog::v1::EngineKind value) {
  return kKinds[EngineKind_IsValid(value) ? static_cast<size_t>(value) : 0];
}

std::span<const Kind> All() { return std::span(kKinds).subspan(1); }

const Kind* Find(std::string_view name) {
  const auto kinds = All();
  const auto found = std::ranges::find(kinds, name, &Kind::name);
  return found == kinds.end() ? nullptr : &*found;
}

}  // namespace tollgate::engines
