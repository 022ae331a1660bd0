// What completions call `prompt` and embeddings call `input`: one text, several texts, the token
// ids of one text, or those of several. spec: wire.md 3, 4.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/error/error.h"
#include "common/json/json.h"
#include "gateway/pipeline/canonical_request.h"

namespace tollgate::gateway {

struct TextInputs {
  PromptSize size;
  // Insides of JSON literals, views into the document, in their order. Empty when the inputs are
  // token ids.
  std::vector<std::string_view> texts;
};

struct TextInputsRule {
  std::string_view name;  // of the field
  int64_t most = 1;       // inputs
  bool empty_text = true;
};

// 400 with the field's name when the value is none of the four forms, empty, or above the limit.
Result<TextInputs> ReadTextInputs(json::Value value, const TextInputsRule& rule);

}  // namespace tollgate::gateway
