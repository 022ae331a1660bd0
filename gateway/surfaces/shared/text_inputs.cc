#include "gateway/surfaces/shared/text_inputs.h"

#include <algorithm>
#include <string>

#include "common/base/try.h"

namespace tollgate::gateway {

namespace {

class TextInputReader {
 public:
  explicit TextInputReader(const TextInputsRule& rule) : rule_(rule) {}

  Result<TextInputs> Read(json::Value value) {
    if (value.is_null()) return Refuse("Missing required parameter: " + Name() + ".");
    if (value.is_string()) {
      TRY(ReadText(value));
      return std::move(inputs_);
    }
    if (!value.is_array()) return BadForm();
    if (value.size() == 0) return Refuse(Name() + " must not be empty.");
    const json::Value first = *value.begin();
    if (first.is_number()) {
      TRY(ReadTokens(value));
      return std::move(inputs_);
    }
    const auto count = static_cast<int64_t>(value.size());
    if (count > rule_.max_inputs) {
      return Refuse(Name() + " may hold at most " + std::to_string(rule_.max_inputs) + " inputs.");
    }
    inputs_.size.prompts = count;
    const bool texts = first.is_string();
    for (const json::Value item : value) {
      if (texts != item.is_string()) return BadForm();
      TRY(texts ? ReadText(item) : ReadTokens(item));
    }
    return std::move(inputs_);
  }

 private:
  std::string Name() const { return "'" + std::string(rule_.name) + "'"; }
  Fail<Error> Refuse(std::string message) const {
    return BadRequest(std::move(message), std::string(rule_.name));
  }
  Fail<Error> BadForm() const {
    return Refuse(Name() +
                  " must be a string, an array of strings, an array of token ids, or an array of "
                  "arrays of token ids.");
  }

  Result<void> ReadText(json::Value text) {
    const std::string_view escaped = text.raw_string();
    if (escaped.empty() && !rule_.allow_empty_text)
      return Refuse(Name() + " must not hold empty strings.");
    inputs_.texts.push_back(escaped);
    const auto bytes = static_cast<int64_t>(escaped.size());
    inputs_.size.text_bytes += bytes;
    inputs_.size.longest_text_bytes = std::max(inputs_.size.longest_text_bytes, bytes);
    ++inputs_.size.messages;  // a text gets begin and end tokens, like a message
    return {};
  }

  Result<void> ReadTokens(json::Value list) {
    if (!list.is_array()) return BadForm();
    if (list.size() == 0) return Refuse(Name() + " must not hold empty arrays.");
    for (const json::Value token : list) {
      if (!token.is_number()) return BadForm();
      // 5.0 is not accepted: engines recognize a list of ids by its plain integers.
      const bool plain = token.raw().find_first_of(".eE") == std::string_view::npos;
      const int64_t id = plain ? token.Integer().value_or(-1) : -1;
      if (id < 0 || id > INT32_MAX) return Refuse("Token ids must be non-negative integers.");
    }
    const auto count = static_cast<int64_t>(list.size());
    inputs_.size.tokens += count;
    inputs_.size.longest_tokens = std::max(inputs_.size.longest_tokens, count);
    return {};
  }

  const TextInputsRule& rule_;
  TextInputs inputs_;
};

}  // namespace

Result<TextInputs> ReadTextInputs(json::Value value, const TextInputsRule& rule) {
  return TextInputReader(rule).Read(value);
}

}  // namespace tollgate::gateway
