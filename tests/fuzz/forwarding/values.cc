#include "tests/fuzz/forwarding/values.h"

#include <algorithm>

#include "tests/fuzz/random_text.h"

namespace tollgate::fuzz {
namespace {

using test::Json;

constexpr int kMaxDepth = 6;

std::string AnyText(Random& random, size_t most) { return ToUtf8(RandomText(random, most, false)); }

class Writer {
 public:
  explicit Writer(Random& random) : random_(random) {
    escaped_percent_ = random.Pick<size_t>({0, 5, 100});
    blank_percent_ = random.Pick<size_t>({0, 0, 20});
  }

  void Value(const Json& value) {
    Blank();
    if (value.is_object()) {
      out_ += '{';
      bool first = true;
      for (const Json::Member& member : value.members()) {
        if (!first) out_ += ',';
        first = false;
        Blank();
        String(member.first);
        Blank();
        out_ += ':';
        Value(member.second);
      }
      out_ += '}';
    } else if (value.is_array()) {
      out_ += '[';
      bool first = true;
      for (const Json& element : value.elements()) {
        if (!first) out_ += ',';
        first = false;
        Value(element);
      }
      out_ += ']';
    } else if (value.is_string()) {
      String(value.str());
    } else {
      out_ += value.Dump();
    }
    Blank();
  }

  std::string Take() { return std::move(out_); }

 private:
  void Blank() {
    while (random_.Percent(blank_percent_)) out_ += random_.Pick<char>({' ', '\n', '\t', '\r'});
  }
  void String(const std::string& text) {
    out_ += '"' + Escape(random_, ToUtf16(text), escaped_percent_) + '"';
  }

  Random& random_;
  size_t escaped_percent_, blank_percent_;
  std::string out_;
};

}  // namespace

Json Number(std::string_view text) { return Json::Parse(text).value_or(Json()); }

Json RandomString(Random& random) { return Json(AnyText(random, 12)); }

Json RandomJsonObject(Random& random, int depth) {
  Json object = Json::Object();
  for (size_t left = random.Below(5); left > 0; --left) {
    std::string key =
        random.Percent(50)
            ? random.Pick<std::string>({"type", "properties", "const", "enum", "", "default",
                                        "maximum", "model", "stream", "null", "role", "__proto__"})
            : AnyText(random, 6);
    // With U+FFFD in a key, replacing a NUL in another key could produce the same name twice.
    if (key.find("\xef\xbf\xbd") != std::string::npos) continue;
    if (!object.has(key)) object.Set(std::move(key), RandomValue(random, depth + 1));
  }
  return object;
}

Json RandomValue(Random& random, int depth) {
  switch (random.Below(depth >= kMaxDepth ? 5 : 8)) {
    case 0:
      return Json();
    case 1:
      return Json(random.Percent(50));
    case 2:
    case 3:
      return Number(random.Pick<const char*>(
          {"0", "-0", "7", "-1", "0.10", "1.0", "1E5", "1e400", "-1e+400", "5e-324",
           "9007199254740993", "123456789012345678901234567890", "3.141592653589793238462643"}));
    case 4:
      return RandomString(random);
    case 5: {
      Json array = Json::Array();
      for (size_t left = random.Below(4); left > 0; --left)
        array.Add(RandomValue(random, depth + 1));
      return array;
    }
    case 6: {  // deep, but within the depth limit
      Json value = RandomValue(random, depth + 1);
      if (depth > 0) return value;
      for (size_t left = random.Below(30); left > 0; --left) {
        Json around = random.Percent(50) ? Json::Array() : Json::Object();
        around.is_array() ? around.Add(std::move(value)) : around.Set("a", std::move(value));
        value = std::move(around);
      }
      return value;
    }
    default:
      return RandomJsonObject(random, depth);
  }
}

std::string Write(Random& random, const Json& value) {
  Writer writer(random);
  writer.Value(value);
  return writer.Take();
}

}  // namespace tollgate::fuzz
