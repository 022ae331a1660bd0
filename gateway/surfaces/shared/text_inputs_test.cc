// The four forms of a prompt or an input. See docs/design/wire.md 3, 4.
#include "gateway/surfaces/shared/text_inputs.h"

#include <gtest/gtest.h>

#include <functional>

namespace tollgate::gateway {
namespace {

constexpr TextInputsRule kRule{.name = "input", .max_inputs = 3, .allow_empty_text = false};

// Calls check(inputs) while the document is valid.
void Good(const std::string& json, const std::function<void(const TextInputs&)>& check) {
  const auto document = json::Document::ParseView(json);
  ASSERT_TRUE(document.ok()) << json;
  const auto inputs = ReadTextInputs(document->root(), kRule);
  ASSERT_TRUE(inputs.ok()) << json << inputs.error().ToString();
  check(*inputs);
}

std::string Refused(const std::string& json, const TextInputsRule& rule = kRule) {
  const auto document = json::Document::ParseView(json);
  EXPECT_TRUE(document.ok()) << json;
  const auto inputs = ReadTextInputs(document->root(), rule);
  if (inputs.ok()) return "accepted";
  EXPECT_EQ(inputs.error().id, ErrorId::kBadRequest);
  EXPECT_EQ(inputs.error().param, rule.name);
  return inputs.error().message;
}

TEST(TextInputs, OneText) {
  Good(R"("a\u0041")", [](const TextInputs& inputs) {
    EXPECT_EQ(inputs.texts, std::vector<std::string_view>{R"(a\u0041)"});
    EXPECT_EQ(inputs.size.prompts, 1);
    EXPECT_EQ(inputs.size.text_bytes, 7);
    EXPECT_EQ(inputs.size.messages, 1);
    EXPECT_EQ(inputs.size.tokens, 0);
  });
}

TEST(TextInputs, SeveralTexts) {
  Good(R"(["ab", "cde"])", [](const TextInputs& inputs) {
    EXPECT_EQ(inputs.texts.size(), 2u);
    EXPECT_EQ(inputs.size.prompts, 2);
    EXPECT_EQ(inputs.size.text_bytes, 5);
    EXPECT_EQ(inputs.size.messages, 2);
  });
}

TEST(TextInputs, TokenIdsAreCountedExactly) {
  Good("[0, 5, 2147483647]", [](const TextInputs& inputs) {
    EXPECT_TRUE(inputs.texts.empty());
    EXPECT_EQ(inputs.size.prompts, 1);
    EXPECT_EQ(inputs.size.tokens, 3);
    EXPECT_EQ(inputs.size.longest_tokens, 3);
    EXPECT_EQ(inputs.size.messages, 0);
    EXPECT_EQ(inputs.size.text_bytes, 0);
  });
  Good("[[1,2],[3],[4,5,6]]", [](const TextInputs& inputs) {
    EXPECT_EQ(inputs.size.prompts, 3);
    EXPECT_EQ(inputs.size.tokens, 6);
    EXPECT_EQ(inputs.size.longest_tokens, 3);
  });
  // The limit is on the number of inputs, not on their tokens.
  Good("[1,2,3,4]", [](const TextInputs& inputs) { EXPECT_EQ(inputs.size.tokens, 4); });
}

TEST(TextInputs, InvalidInputsNameTheField) {
  EXPECT_EQ(Refused("null"), "Missing required parameter: 'input'.");
  EXPECT_EQ(Refused("[]"), "'input' must not be empty.");
  EXPECT_EQ(Refused("\"\""), "'input' must not hold empty strings.");
  EXPECT_EQ(Refused(R"(["a",""])"), "'input' must not hold empty strings.");
  EXPECT_EQ(Refused("[[1],[]]"), "'input' must not hold empty arrays.");
  EXPECT_EQ(Refused(R"(["a","b","c","d"])"), "'input' may hold at most 3 inputs.");
  for (const char* form : {"5", "true", "{}", "[null]", "[{}]", "[true]", R"(["a",1])",
                           R"([1,"a"])", R"(["a",["b"]])", R"([[1],"a"])", "[[[1]]]", "[[1],2]"}) {
    EXPECT_NE(Refused(form).find("must be a string, an array of strings"), std::string::npos)
        << form << Refused(form);
  }
  for (const char* id : {"[-1]", "[1.5]", "[5.0]", "[1e3]", "[2147483648]", "[[1],[-1]]"}) {
    EXPECT_EQ(Refused(id), "Token ids must be non-negative integers.") << id;
  }
}

TEST(TextInputs, EmptyTextsMayBeAllowed) {
  EXPECT_EQ(Refused("\"\"", {.name = "prompt", .max_inputs = 1}), "accepted");
}

}  // namespace
}  // namespace tollgate::gateway
