#include "gateway/surfaces/shared/engine_fields.h"

namespace tollgate::gateway {

namespace {

using enum FieldKind;
using enum FieldFate;

constexpr FieldRule kRules[] = {
    // Numbers that engines understand beyond the public formats.
    {"top_k", kInteger, kForward, -1},
    {"min_p", kNumber, kForward, 0, 1},
    {"repetition_penalty", kNumber, kForward, 0},
    {"length_penalty", kNumber, kForward},
    {"min_tokens", kInteger, kForward, 0},
    // They reach beyond the caller's own request: they pick queues, slots, adapters or request ids
    // that tenants share, load code, open connections, or go around max_tokens.
    {"priority", kAny, kDrop},
    {"request_id", kAny, kDrop},
    {"rid", kAny, kDrop},
    {"kv_transfer_params", kAny, kDrop},
    {"bootstrap_host", kAny, kDrop},
    {"bootstrap_port", kAny, kDrop},
    {"bootstrap_room", kAny, kDrop},
    {"data_parallel_rank", kAny, kDrop},
    {"session_params", kAny, kDrop},
    {"custom_logit_processor", kAny, kDrop},
    {"logits_processors", kAny, kDrop},
    {"lora_path", kAny, kDrop},
    {"lora", kAny, kDrop},
    {"adapter_id", kAny, kDrop},
    {"id_slot", kAny, kDrop},
    {"n_predict", kAny, kDrop},
    {"max_new_tokens", kAny, kDrop},
    {"n_probs", kAny, kDrop},
    {"prompt_logprobs", kAny, kDrop},
    {"return_token_ids", kAny, kDrop},
    {"return_hidden_states", kAny, kDrop},
    {"vllm_xargs", kAny, kDrop},
    // Set to false it makes an engine keep its reasoning to itself: tokens that nothing bears
    // witness to, so that honest usage could not be believed (docs/adr/0004).
    {"include_reasoning", kAny, kDrop},
};

constexpr std::string_view kPromptFields[] = {"documents", "chat_template", "chat_template_kwargs",
                                              "functions", "response_format"};

}  // namespace

const FieldRule* FindEngineRule(json::Value member) { return FindRule(kRules, member); }

bool StandsInPrompt(json::Value member) {
  for (const std::string_view name : kPromptFields) {
    if (member.KeyEquals(name)) return true;
  }
  return false;
}

}  // namespace tollgate::gateway
