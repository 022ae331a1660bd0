// The `prompt` of completions and the `input` of embeddings: one text, several texts, the token ids
// of one text, or those of several. See docs/design/wire.md 3, 4.
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
  // Contents of JSON strings, views into the document. Empty if the inputs are token ids.
  std::vector<std::string_view> texts;
};

struct TextInputsRule {
  std::string_view name;  // the field's name
  int64_t max_inputs = 1;
  bool allow_empty_text = true;
};

// Fails with 400 naming the field if the value has none of the four forms, is empty, or has too
// many inputs.
Result<TextInputs> ReadTextInputs(json::Value value, const TextInputsRule& rule);

}  // namespace tollgate::gateway
