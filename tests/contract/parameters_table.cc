#include "tests/contract/parameters_table.h"

namespace tollgate::test {
namespace {

std::string Nested(size_t depth, const std::string& open, const std::string& close) {
  std::string text;
  for (size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (size_t i = 0; i < depth; ++i) text += close;
  return text;
}

std::vector<NumericParameter> Table() {
  std::vector<NumericParameter> table = {
      {.endpoint = "chat", .name = "max_tokens", .low = "0", .below = "-1"},
      {.endpoint = "chat", .name = "max_completion_tokens", .low = "0", .below = "-1"},
      {.endpoint = "chat", .name = "n", .low = "1", .high = "128", .below = "0", .above = "129"},
      {.endpoint = "chat",
       .name = "top_logprobs",
       .low = "0",
       .high = "20",
       .below = "-1",
       .above = "21",
       .with = ",\"logprobs\":true"},
      {.endpoint = "completions", .name = "max_tokens", .low = "0", .below = "-1"},
      {.endpoint = "completions",
       .name = "n",
       .low = "1",
       .high = "128",
       .below = "0",
       .above = "129"},
      {.endpoint = "completions", .name = "best_of", .low = "1", .below = "0", .above = "129"},
      {.endpoint = "completions",
       .name = "logprobs",
       .low = "0",
       .high = "5",
       .below = "-1",
       .above = "6"},
      {.endpoint = "responses", .name = "max_output_tokens", .low = "0", .below = "-1"},
      {.endpoint = "responses",
       .name = "top_logprobs",
       .low = "0",
       .high = "20",
       .below = "-1",
       .above = "21"},
      {.endpoint = "responses", .name = "max_tool_calls", .low = "0", .below = "-1"},
      {.endpoint = "messages",
       .name = "thinking",
       .low = "0",
       .below = "-1",
       .member = R"("thinking":{"type":"enabled","budget_tokens":$V})"},
      {.endpoint = "embeddings", .name = "dimensions", .low = "1", .below = "0"},
      {.endpoint = "messages", .name = "max_tokens", .low = "0", .below = "-1", .required = true},
      {.endpoint = "messages", .name = "top_k", .low = "0", .below = "-1"},
      {.endpoint = "messages",
       .name = "temperature",
       .integer = false,
       .low = "0",
       .high = "1",
       .below = "-0.0001",
       .above = "1.0001"},
      {.endpoint = "messages",
       .name = "top_p",
       .integer = false,
       .low = "0",
       .high = "1",
       .below = "-0.0001",
       .above = "1.0001"},
  };
  for (const char* endpoint : {"chat", "completions"}) {
    for (const char* name : {"frequency_penalty", "presence_penalty"}) {
      table.push_back({.endpoint = endpoint,
                       .name = name,
                       .integer = false,
                       .low = "-2",
                       .high = "2",
                       .below = "-2.0001",
                       .above = "2.0001"});
    }
    table.push_back({.endpoint = endpoint,
                     .name = "seed",
                     .low = "-9223372036854775808",
                     .high = "9223372036854775807",
                     .below = "-9223372036854775809",
                     .above = "9223372036854775808"});
    table.push_back({.endpoint = endpoint,
                     .name = "logit_bias",
                     .integer = false,
                     .low = "-100",
                     .high = "100",
                     .below = "-100.1",
                     .above = "101",
                     .required = true,
                     .member = R"("logit_bias":{"5":$V})"});
    table.push_back({.endpoint = endpoint, .name = "min_tokens", .low = "0", .below = "-1"});
    table.push_back({.endpoint = endpoint, .name = "top_k", .low = "-1", .below = "-2"});
    table.push_back({.endpoint = endpoint,
                     .name = "min_p",
                     .integer = false,
                     .low = "0",
                     .high = "1",
                     .below = "-0.1",
                     .above = "1.1"});
    table.push_back({.endpoint = endpoint,
                     .name = "repetition_penalty",
                     .integer = false,
                     .low = "0",
                     .below = "-0.1"});
  }
  for (const char* endpoint : {"chat", "completions", "responses"}) {
    table.push_back({.endpoint = endpoint,
                     .name = "temperature",
                     .integer = false,
                     .low = "0",
                     .high = "2",
                     .below = "-0.0001",
                     .above = "2.0001"});
    table.push_back({.endpoint = endpoint,
                     .name = "top_p",
                     .integer = false,
                     .low = "0",
                     .high = "1",
                     .below = "-0.0001",
                     .above = "1.0001"});
  }
  return table;
}

}  // namespace

const std::vector<NumericParameter>& NumericParameters() {
  static const std::vector<NumericParameter> table = Table();
  return table;
}

std::string NumericParameter::Write(const std::string& value) const {
  std::string text = member.empty() ? "\"" + name + "\":$V" : member;
  text.replace(text.find("$V"), 2, value);
  return with + "," + text;
}

std::vector<Spelling> SpellingsOf(const NumericParameter& parameter) {
  std::vector<Spelling> list = {
      {parameter.low, true}, {"1", true},      {"1.0", true},    {"1e0", true}, {"10.00E-1", true},
      {"\"1\"", false},      {"\"\"", false},  {"true", false},  {"[]", false}, {"[1]", false},
      {"{}", false},         {"1e400", false}, {"-1e400", false}};
  // Absent (decision 17).
  list.push_back({"null", !parameter.required});
  if (!parameter.high.empty()) list.push_back({parameter.high, true});
  if (!parameter.below.empty()) list.push_back({parameter.below, false});
  if (!parameter.above.empty()) list.push_back({parameter.above, false});
  if (parameter.integer) {
    for (const char* text : {"1.5", "0.1", "1e-1", "1000000000000000000000000000000", "1e30",
                             "9223372036854775808", "0.9999999999999999999999999999"}) {
      list.push_back({text, false});
    }
  } else {
    list.push_back({"0.5", true});
    list.push_back({"5e-1", true});
  }
  return list;
}

const std::vector<BadBody>& BadBodies() {
  static const std::vector<BadBody> bodies = {
      {"Empty", ""},
      {"Blanks", " \r\n\t"},
      {"Array", "[]"},
      {"String", "\"x\""},
      {"Number", "1"},
      {"Null", "null"},
      {"True", "true"},
      {"Word", "model"},
      {"Cut", "{$B"},
      {"TwoValues", "{$B}{$B}"},
      {"TrailingByte", "{$B}x"},
      {"TrailingNul", std::string("{$B}") + '\0'},
      {"TrailingComma", "{$B,}"},
      {"ByteOrderMark", "\xef\xbb\xbf{$B}"},
      {"Utf16", std::string("\xff\xfe{\0}\0", 6)},
      {"Comment", "{$B /* x */}"},
      {"SingleQuotes", "{$B,'x':1}"},
      {"BareKey", "{$B,x:1}"},
      {"DuplicateKey", "{$B,\"model\":\"sim/model\"}"},
      {"DuplicateKeyInEscapes", "{$B,\"mod\\u0065l\":\"sim/model\"}"},
      {"DuplicateUnknownKey", R"({$B,"x":1,"x":1})"},
      {"DuplicateKeyOfReplacedSurrogates", R"({$B,"\ud83d":1,"\ud83e":1})"},
      {"DuplicateKeyWithin", R"({$B,"x":[{"a":1,"b":{"c":1,"c":2}}]})"},
      {"NaN", R"({$B,"x":NaN})"},
      {"Infinity", R"({$B,"x":Infinity})"},
      {"MinusInfinity", R"({$B,"x":-Infinity})"},
      {"LeadingZero", R"({$B,"x":01})"},
      {"PlusSign", R"({$B,"x":+1})"},
      {"NoDigitBeforeThePoint", R"({$B,"x":.5})"},
      {"NoDigitBehindThePoint", R"({$B,"x":5.})"},
      {"NoDigitInTheExponent", R"({$B,"x":1e})"},
      {"Hexadecimal", R"({$B,"x":0x10})"},
      {"TooDeepArrays", "{$B,\"x\":" + Nested(65, "[", "]") + "}"},
      {"MuchTooDeepArrays", "{$B,\"x\":" + Nested(200'000, "[", "]") + "}"},
      {"TooDeepObjects", "{$B,\"x\":" + Nested(65, "{\"a\":", "}") + "}"},
      {"OpenArraysOnly", "{$B,\"x\":" + std::string(500'000, '[')},
      {"NotUtf8", "{$B,\"x\":\"\xff\"}"},
      {"NotUtf8InAKey", "{$B,\"\xc3\":1}"},
      {"OverlongUtf8", "{$B,\"x\":\"\xc0\xaf\"}"},
      {"SurrogateInUtf8", "{$B,\"x\":\"\xed\xa0\x80\"}"},
      {"AboveUnicode", "{$B,\"x\":\"\xf4\x90\x80\x80\"}"},
      {"CutCharacter", "{$B,\"x\":\"\xf0\x9f\x98\"}"},
      {"RawNul", std::string("{$B,\"x\":\"") + '\0' + "\"}"},
      {"RawLineFeed", "{$B,\"x\":\"a\nb\"}"},
      {"RawTab", "{$B,\"x\":\"a\tb\"}"},
      {"UnknownEscape", R"({$B,"x":"\q"})"},
      {"ShortEscape", R"({$B,"x":"\u12"})"},
      {"OpenString", R"({$B,"x":"abc})"},
  };
  return bodies;
}

}  // namespace tollgate::test
