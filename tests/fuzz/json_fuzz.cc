// The JSON reader: every value of an accepted text can be read, and is itself valid JSON.
#include <string>

#include "common/base/text.h"
#include "common/json/json.h"
#include "tests/fuzz/fuzz.h"

namespace tollgate::json {
namespace {

constexpr size_t kReadAgainBelow = 2000;  // bytes; above, the cost is quadratic

void CheckString(const Value value) {
  const std::string text = value.string();
  FUZZ_CHECK(value.StringEquals(text));
  FUZZ_CHECK(Unescape(value.raw_string()) == text);
  FUZZ_CHECK(IsValidUtf8(text));
  const auto again = Document::Parse(Quoted(text), {.allow_nul = true});
  FUZZ_CHECK(again.ok() && again->root().string() == text);
}

void Walk(const Value value, const Limits& limits, std::string_view text) {
  FUZZ_CHECK(text.substr(value.offset(), value.raw().size()) == value.raw());
  if (text.size() < kReadAgainBelow) {
    const auto again = Document::ParseView(value.raw(), limits);
    FUZZ_CHECK(again.ok() && again->root().type() == value.type());
  }
  switch (value.type()) {
    case Type::kNull:
      break;
    case Type::kBool:
      FUZZ_CHECK(value.raw() == (value.boolean() ? "true" : "false"));
      break;
    case Type::kNumber: {
      const auto integer = value.Integer();
      const auto number = value.Number();
      if (integer && number) FUZZ_CHECK(static_cast<double>(*integer) == *number);
      break;
    }
    case Type::kString:
      CheckString(value);
      break;
    case Type::kArray:
    case Type::kObject: {
      size_t count = 0;
      for (const Value inner : value) {
        ++count;
        Walk(inner, limits, text);
        if (!value.is_object()) continue;
        const std::string key = inner.key();
        FUZZ_CHECK(inner.KeyEquals(key));
        FUZZ_CHECK(text[inner.key_offset()] == '"');
        // Keys are unique, so the lookup finds this one.
        FUZZ_CHECK(value.Find(key) && value.Find(key).offset() == inner.offset());
      }
      FUZZ_CHECK(count == value.size());
    }
  }
}

bool Read(std::string_view text, const Limits& limits) {
  const auto document = Document::ParseView(text, limits);
  if (!document.ok()) {
    FUZZ_CHECK(!document.error().message.empty());
    FUZZ_CHECK(document.error().offset <= text.size());
    return false;
  }
  Walk(document->root(), limits, text);
  return true;
}

}  // namespace
}  // namespace tollgate::json

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tollgate::json;
  const std::string_view text = tollgate::fuzz::Text(data, size);
  const bool strict = Read(text, {});
  const bool lax = Read(text, {.allow_lone_surrogates = true, .allow_nul = true});
  if (strict) FUZZ_CHECK(lax && tollgate::IsValidUtf8(text));
  // Request bodies are read this way: the document's own text becomes strict except for NUL, and
  // keeps its length (decision 38).
  const auto own =
      Document::Parse(std::string(text), {.replace_lone_surrogates = true, .allow_nul = true});
  if (strict) FUZZ_CHECK(own.ok() && own->text() == text);
  if (own.ok()) {
    FUZZ_CHECK(lax && own->text().size() == text.size());
    FUZZ_CHECK(Read(own->text(), {.allow_nul = true}));
  }
  Read(text, {.max_depth = 3, .max_members = 4, .max_values = 16});
  return 0;
}
