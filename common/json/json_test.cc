#include "common/json/json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <random>

#include "common/base/text.h"

namespace tollgate::json {
namespace {

bool Accepts(std::string_view text, const Limits& limits = {}) {
  return Document::ParseView(text, limits).ok();
}

Document MustParse(std::string text, const Limits& limits = {}) {
  auto document = Document::Parse(std::move(text), limits);
  EXPECT_TRUE(document.ok()) << (document.ok() ? "" : document.error().message);
  return std::move(*document);
}

TEST(JsonReader, ReadsEveryKindOfValue) {
  const Document document =
      MustParse(R"( {"a":[1,-2.5e3,"x\n",true,false,null,{}],"b":{"c":"d"}, "e":[] } )");
  const Value root = document.root();
  ASSERT_TRUE(root.is_object());
  EXPECT_EQ(root.size(), 3u);
  const Value a = root.Find("a");
  ASSERT_TRUE(a.is_array());
  EXPECT_EQ(a.size(), 7u);
  std::vector<Type> types;
  for (const Value element : a) types.push_back(element.type());
  EXPECT_EQ(types, (std::vector<Type>{Type::kNumber, Type::kNumber, Type::kString, Type::kBool,
                                      Type::kBool, Type::kNull, Type::kObject}));
  EXPECT_EQ(root.Find("b").Find("c").string(), "d");
  EXPECT_EQ(root.Find("b").raw(), R"({"c":"d"})");
  EXPECT_EQ(root.Find("e").raw(), "[]");
  EXPECT_EQ(document.text().substr(root.Find("b").key_offset(), 3), "\"b\"");
  EXPECT_FALSE(root.Find("missing"));
  EXPECT_TRUE(root.Find("missing").is_null());
  EXPECT_FALSE(root.Find("missing").Find("deeper"));
}

TEST(JsonReader, MembersHaveTheirKeys) {
  const Document document = MustParse(R"({"x":1,"y\u0041":2})");
  std::vector<std::string> keys;
  for (const Value member : document.root()) keys.push_back(member.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"x", "yA"}));
  EXPECT_EQ(document.root().Find("yA").Integer(), 2);
}

TEST(JsonReader, RejectsTextThatIsNotJson) {  // H50, H51
  const char* const kBad[] = {
      "",
      " ",
      "{",
      "}",
      "[",
      "]",
      "{\"a\"}",
      "{\"a\":}",
      "{\"a\":1,}",
      "[1,]",
      "[,1]",
      "{,}",
      "{a:1}",
      "{'a':1}",
      "nul",
      "nulll",
      "truefalse",
      "True",
      "NaN",
      "Infinity",
      "-Infinity",
      "[1 2]",
      "{\"a\":1 \"b\":2}",
      "{} {}",
      "{}x",
      "// c\n{}",
      "{}// c",
      "/* */1",
      "\"abc",
      "\"a\\\"",
      "\"\\x41\"",
      "\"\\u12\"",
      "\"\\u12G4\"",
      "\"\t\"",
      "\"\n\"",
      "01",
      "-",
      "-01",
      "+1",
      "1.",
      ".5",
      "1e",
      "1e+",
      "0x10",
      "1_000",
      "--1",
      "1.e3",
      "\xEF\xBB\xBF{}",
      "{\"a\":1]",
      "[1}",
      "\"\\",
      "\"\\u",
      "[\"a\" \"b\"]",
      "{\"a\":1,,\"b\":2}",
      "{1:2}",
      "\x01",
  };
  for (const char* text : kBad) EXPECT_FALSE(Accepts(text)) << text;
  EXPECT_FALSE(Accepts(std::string_view("{}\0", 3)));
}

TEST(JsonReader, AcceptsTheGrammar) {
  const char* const kGood[] = {
      "null",
      "true",
      "0",
      "-0",
      "-0.0",
      "1e5",
      "1E+5",
      "1e-5",
      "0.1",
      "\"\"",
      "[]",
      "{}",
      "\t\r\n [ ] ",
      "\"\\/\\b\\f\\n\\r\\t\\\"\\\\\"",
      "\"\\uD83D\\uDE00\"",
      "[[],[[]]]",
      "1e400",
      "123456789012345678901234567890",
      "\"\x7f\"",
      "{\"\":1}",
  };
  for (const char* text : kGood) EXPECT_TRUE(Accepts(text)) << text;
}

TEST(JsonReader, RejectsDuplicateKeysIncludingEscapedOnes) {  // H53, H54
  EXPECT_FALSE(Accepts(R"({"model":"a","model":"b"})"));
  EXPECT_FALSE(Accepts(R"({"model":"a","mo\u0064el":"b"})"));
  EXPECT_FALSE(Accepts(R"({"a":{"x":1,"y":2,"x":3}})"));
  EXPECT_TRUE(Accepts(R"({"a":{"x":1},"b":{"x":1}})"));
  const auto result = Document::ParseView(R"({"model":"a","model":"b"})");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "duplicate key \"model\" at byte 13");
  EXPECT_EQ(result.error().offset, 13u);
}

TEST(JsonReader, DecodesEachEscapedKeyOnce) {
  for (const int members : {10, 5'000}) {
    std::string text = "{";
    for (int i = 0; i < members; ++i) {
      const std::string digits = std::to_string(10'000 + i);
      text += (i > 0 ? ",\"" : "\"") + std::string(200, 'k') + "\\u0061" + digits + "\":1";
    }
    text += "}";
    const uint64_t before = internal::decoded_bytes;
    ASSERT_TRUE(Document::ParseView(text).ok());
    EXPECT_LE(internal::decoded_bytes - before, text.size()) << members;
  }
}

TEST(JsonReader, EscapedEqualsAgreesWithUnescape) {
  const std::string pieces[] = {
      "a",       "\\u0061", "\\n", "\\\\", "\\\"",         "\\u00e9", "\xc3\xa9", "\\ud83d\\ude00",
      "\\ud83d", "\\u0000", "\\/", "b",    "\xe2\x82\xac", "\\u20ac"};
  std::vector<std::string> literals = {""};
  for (const std::string& first : pieces) {
    literals.push_back(first);
    for (const std::string& second : pieces) literals.push_back(first + second);
  }
  for (const std::string& literal : literals) {
    const std::string decoded = Unescape(literal);
    EXPECT_TRUE(EscapedEquals(literal, decoded)) << literal;
    EXPECT_FALSE(EscapedEquals(literal, decoded + "x")) << literal;
    EXPECT_FALSE(EscapedEquals(literal + "x", decoded)) << literal;
    for (const std::string& other : literals) {
      EXPECT_EQ(EscapedEquals(literal, Unescape(other)), decoded == Unescape(other))
          << literal << " " << other;
    }
  }
}

TEST(JsonReader, FindsDuplicatesInLargeObjects) {
  for (const int count : {15, 16, 17, 18, 1000}) {
    std::string text = "{";
    for (int i = 0; i < count; ++i)
      text += "\"key" + std::to_string(i) + "\":{\"n\":" + std::to_string(i) + "},";
    EXPECT_TRUE(Accepts(text + "\"last\":1}")) << count;
    EXPECT_FALSE(Accepts(text + "\"key0\":1}")) << count;
    EXPECT_FALSE(Accepts(text + "\"\\u006bey" + std::to_string(count - 1) + "\":1}")) << count;
  }
}

TEST(JsonReader, LimitsDepthAndCounts) {  // H52
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(Accepts(nested(64)));
  EXPECT_FALSE(Accepts(nested(65)));
  EXPECT_FALSE(Accepts(std::string(100'000, '[')));
  std::string members = "{";
  for (int i = 0; i < 10'001; ++i) members += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
  EXPECT_FALSE(Accepts(members + "}"));
  Limits small;
  small.max_values = 10;
  EXPECT_TRUE(Accepts("[1,2,3,4,5,6,7,8,9]", small));
  EXPECT_FALSE(Accepts("[1,2,3,4,5,6,7,8,9,10]", small));
}

TEST(JsonReader, RejectsBadUtf8EverywhereInAString) {  // H55
  const std::string kBad[] = {
      "\x80",
      "\xC0\x80",
      "\xC1\xBF",
      "\xC2",
      "\xE0\x80\x80",
      "\xE0\x9F\xBF",
      "\xED\xA0\x80",
      "\xED\xBF\xBF",
      "\xF0\x80\x80\x80",
      "\xF0\x8F\xBF\xBF",
      "\xF4\x90\x80\x80",
      "\xF5\x80\x80\x80",
      "\xFF",
      "\xE2\x82",
      "\xF0\x9F\x98",
      "\xE2\x28\xA1",
  };
  for (const std::string& bad : kBad) {
    EXPECT_FALSE(IsValidUtf8(bad));
    // The bad byte is also placed before, within and after a run of three-byte characters, which
    // are read in pairs.
    std::string run;
    for (int n = 0; n < 5; ++n) {
      EXPECT_FALSE(IsValidUtf8(run + bad + "\xE6\x97\xA5\xE6\x97\xA5\xE6\x97\xA5"));
      EXPECT_FALSE(IsValidUtf8(run + bad));
      run += "\xE6\x97\xA5";
    }
    for (const size_t shift : {0, 1, 7, 15, 16, 31, 40}) {
      const std::string pad(shift, 'a');
      EXPECT_FALSE(Accepts("\"" + pad + bad + "\"")) << shift;
      EXPECT_FALSE(Accepts("{\"" + pad + bad + pad + "\":1}")) << shift;
    }
  }
  for (const std::string good : {"\xC2\x80", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                 "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "\xE6\x97\xA5"}) {
    EXPECT_TRUE(IsValidUtf8(good));
    EXPECT_TRUE(Accepts("\"" + good + "\""));
    EXPECT_TRUE(Accepts("\"0123456789abcde" + good + good + "x\""));
  }
}

TEST(JsonReader, RejectsLoneSurrogatesAndNulUnlessAllowed) {  // H55
  Limits lax;
  lax.allow_lone_surrogates = true;
  for (const char* text : {R"("\uD800")", R"("\uDC00")", R"("\uD800x")", R"("\uD800\u0041")",
                           R"("\uD800\uD800")", R"("\uDE00\uD83D")"}) {
    EXPECT_FALSE(Accepts(text)) << text;
    EXPECT_TRUE(Accepts(text, lax)) << text;
  }
  EXPECT_EQ(MustParse(R"("a\uD800b")", lax).root().string(),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_FALSE(Accepts(R"("\u0000")"));
  Limits nul;
  nul.allow_nul = true;
  EXPECT_TRUE(Accepts(R"("\u0000")", nul));
  EXPECT_FALSE(Accepts(std::string_view("\"\0\"", 3), nul));  // never unescaped
}

// The document's text changes in place: an escape and its replacement have the same length.
TEST(JsonReader, ReplacesLoneSurrogatesInItsOwnText) {  // decision 38
  const Limits replace{.replace_lone_surrogates = true};
  const struct {
    const char *text, *changed;
  } kCases[] = {
      {R"("\ud800")", R"("\ufffd")"},
      {R"("\uDC00")", R"("\ufffd")"},
      {R"("a\uD83Dx")", R"("a\ufffdx")"},
      {R"("\ud83d\u0041")", R"("\ufffd\u0041")"},
      {R"("\ude00\ud83d")", R"("\ufffd\ufffd")"},
      {R"("\ud83d\ud83d\ude00")", R"("\ufffd\ud83d\ude00")"},
      {R"("\ud83d\\ude00")", R"("\ufffd\\ude00")"},
      {R"("\\ud800")", R"("\\ud800")"},
      {R"("\ud83d\ude00")", R"("\ud83d\ude00")"},
      {R"({"\ud800":["x","\udfff",1]})", R"({"\ufffd":["x","\ufffd",1]})"},
  };
  for (const auto& c : kCases) {
    const Document document = MustParse(c.text, replace);
    EXPECT_EQ(document.text(), c.changed);
    EXPECT_EQ(document.root().raw(), c.changed);
  }
  // The document does not own this text, so it stays unchanged. Two keys that become equal are
  // duplicates.
  EXPECT_FALSE(Accepts(R"("\ud800")", replace));
  EXPECT_FALSE(Document::Parse(R"({"\ud800":1,"\udfff":2})", replace).ok());
  // Invalid UTF-8 is not JSON.
  EXPECT_FALSE(Document::Parse("\"\xED\xA0\x80\"", replace).ok());
  EXPECT_FALSE(Document::Parse(R"("\ud83d)", replace).ok());
}

TEST(JsonNumbers, IntegerValuedFormsAreIntegers) {  // H56, H57
  const auto integer = [](std::string text) { return MustParse(std::move(text)).root().Integer(); };
  EXPECT_EQ(integer("5"), 5);
  EXPECT_EQ(integer("5.0"), 5);
  EXPECT_EQ(integer("1e3"), 1000);
  EXPECT_EQ(integer("1.5e1"), 15);
  EXPECT_EQ(integer("1500e-2"), 15);
  EXPECT_EQ(integer("-0"), 0);
  EXPECT_EQ(integer("0e999999999999999999999"), 0);
  EXPECT_EQ(integer("0.000"), 0);
  EXPECT_EQ(integer("-7.0"), -7);
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(integer("9.223372036854775807e18"), INT64_MAX);
  for (const char* text :
       {"1.5", "1e-1", "1e400", "9223372036854775808", "-9223372036854775809", "9.3e18", "1e19",
        "0.1e-99999999999999999999", "\"5\"", "true", "[]", "1e99999999999999999999", "null"}) {
    EXPECT_EQ(integer(text), std::nullopt) << text;
  }
}

TEST(JsonNumbers, DoublesOverflowToNothingAndUnderflowToZero) {  // H60
  const auto number = [](std::string text) { return MustParse(std::move(text)).root().Number(); };
  EXPECT_EQ(number("0.25"), 0.25);
  EXPECT_EQ(number("-2"), -2.0);
  EXPECT_EQ(number("1e309"), std::nullopt);
  EXPECT_EQ(number("-1e309"), std::nullopt);
  EXPECT_EQ(number("1e-400"), 0.0);
  EXPECT_EQ(number("\"1\""), std::nullopt);
}

TEST(JsonText, EscapesAndDecodesBack) {
  std::string all;
  for (int c = 0; c < 0x80; ++c) all.push_back(static_cast<char>(c));
  all += "\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80";
  const std::string quoted = Quoted(all);
  Limits nul;
  nul.allow_nul = true;
  const Document document = MustParse(quoted, nul);
  EXPECT_EQ(document.root().string(), all);
  EXPECT_TRUE(document.root().StringEquals(all));
  EXPECT_EQ(Quoted("a\"b\\c\n\x1f"), R"("a\"b\\c\n\u001f")");
  EXPECT_EQ(Unescape(R"(\uD83D\uDE00\u00e9\/)"), "\xF0\x9F\x98\x80\xC3\xA9/");
  // A string cannot inject an event into a stream (H74).
  EXPECT_EQ(Quoted("\n\ndata: [DONE]"), R"("\n\ndata: [DONE]")");
}

// Generates random documents with random but valid spacing and escapes.
class RandomDocument {
 public:
  explicit RandomDocument(uint32_t seed) : random_(seed) {}

  std::string Make(int depth, std::string& canonical) {
    switch (Next(depth > 4 ? 5 : 7)) {
      case 0:
        return Both("null", canonical);
      case 1:
        return Both("true", canonical);
      case 2:
        return Both("false", canonical);
      case 3:
        return Both(std::to_string(static_cast<int>(Next(2'000'000)) - 1'000'000), canonical);
      case 4:
        return String(canonical);
      case 5:
        return Sequence('[', ']', depth, canonical);
      default:
        return Sequence('{', '}', depth, canonical);
    }
  }

 private:
  uint32_t Next(uint32_t bound) { return static_cast<uint32_t>(random_() % bound); }
  static std::string Both(std::string text, std::string& canonical) {
    canonical += text;
    return text;
  }
  std::string Space() { return std::string(Next(3), " \n\t\r"[Next(4)]); }

  std::string String(std::string& canonical) {
    static const char* const kPieces[] = {"a",
                                          "Z",
                                          " ",
                                          "\"",
                                          "\\",
                                          "/",
                                          "\n",
                                          "\x1f",
                                          "\xC3\xA9",
                                          "\xE6\x97\xA5",
                                          "\xF0\x9F\x98\x80",
                                          "0123456789abcdefghi"};
    std::string plain, written = "\"";
    for (uint32_t n = Next(12); n > 0; --n) {
      const std::string piece = kPieces[Next(std::size(kPieces))];
      plain += piece;
      if (piece == "a" && Next(2) == 0) {
        written += "\\u0061";
      } else if (piece.size() == 4 && Next(2) == 0) {
        written += "\\uD83d\\uDe00";
      } else if (piece == "/" && Next(2) == 0) {
        written += "\\/";
      } else {
        AppendEscaped(written, piece);
      }
    }
    canonical += Quoted(plain);
    return written + "\"";
  }

  std::string Sequence(char open, char close, int depth, std::string& canonical) {
    std::string out(1, open);
    canonical += open;
    const uint32_t count = Next(6) == 0 ? 20 : Next(5);
    for (uint32_t i = 0; i < count; ++i) {
      if (i > 0) {
        out += "," + Space();
        canonical += ',';
      }
      if (open == '{') {
        const std::string key = "k" + std::to_string(i);
        out += Quoted(key) + Space() + ":";
        canonical += Quoted(key) + ":";
      }
      out += Space() + Make(depth + 1, canonical) + Space();
    }
    canonical += close;
    return out + Space() + close;
  }

  std::mt19937 random_;
};

void Render(const Value value, std::string& out) {
  if (value.is_string()) return AppendQuoted(out, value.string());
  if (!value.is_array() && !value.is_object()) {
    out += value.raw();
    return;
  }
  out += value.is_array() ? '[' : '{';
  bool first = true;
  for (const Value child : value) {
    if (!first) out += ',';
    first = false;
    if (value.is_object()) {
      AppendQuoted(out, child.key());
      out += ':';
    }
    Render(child, out);
  }
  out += value.is_array() ? ']' : '}';
}

TEST(JsonProperty, RandomDocumentsRoundTrip) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::string canonical;
    const std::string text = RandomDocument(seed).Make(0, canonical);
    const Document document = MustParse(text);
    std::string rendered;
    Render(document.root(), rendered);
    ASSERT_EQ(rendered, canonical) << "seed " << seed << ": " << text;
  }
}

TEST(JsonProperty, EveryTruncatedDocumentIsRejected) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::string canonical;
    const std::string text = "[" + RandomDocument(seed).Make(0, canonical) + "]";
    for (size_t cut = 0; cut < text.size(); ++cut) {
      ASSERT_FALSE(Accepts(std::string_view(text).substr(0, cut))) << text << " cut at " << cut;
    }
  }
}

// Mutated documents do not crash the parser. A document that it accepts stays valid when it is
// rendered.
TEST(JsonProperty, MutatedDocumentsAreParsedConsistently) {
  std::mt19937 random(7);
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    std::string canonical;
    std::string text = RandomDocument(seed).Make(0, canonical);
    for (int i = 0; i < 2 && !text.empty(); ++i) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    const auto document = Document::ParseView(text);
    if (!document.ok()) continue;
    std::string rendered;
    Render(document->root(), rendered);
    ASSERT_TRUE(Accepts(rendered)) << rendered;
  }
}

// These are for a reader that checks duplicate keys itself, and one that cuts a value out of a
// longer text.
TEST(JsonLimits, RepeatedKeysAndLaterTextCanBeAllowed) {
  EXPECT_FALSE(Document::ParseView(R"({"a":1,"a":2})").ok());
  const auto repeated = Document::ParseView(R"({"a":1,"a":2})", {.allow_duplicate_keys = true});
  ASSERT_TRUE(repeated.ok());
  EXPECT_EQ(repeated->root().size(), 2U);
  EXPECT_FALSE(Document::ParseView("{} x").ok());
  for (const char* text : {"{} x", "{}}", "{}{", "1x", "[1] ]"}) {
    const auto first = Document::ParseView(text, {.first_value_only = true});
    ASSERT_TRUE(first.ok()) << text;
    EXPECT_TRUE(std::string_view(text).starts_with(first->root().raw())) << text;
  }
  EXPECT_FALSE(Document::ParseView("{ x", {.first_value_only = true}).ok());
}

TEST(JsonLifetime, AMovedDocumentKeepsItsText) {
  Document document = MustParse(R"({"a":"b"})");  // fits the small-string buffer
  const Document moved = std::move(document);
  EXPECT_EQ(moved.root().Find("a").string(), "b");
}

TEST(EscapeLineBreaks, OnlyThoseOfUnicodeAreEscaped) {
  const auto escaped = [](std::string text) {
    EscapeLineBreaks(text);
    return text;
  };
  EXPECT_EQ(escaped("{\"a\":\"b\\n\"}\n\n"), "{\"a\":\"b\\n\"}\n\n");
  EXPECT_EQ(escaped("\"\xC2\x85\xC2\x86 \xE2\x80\xA8\xE2\x80\xA9\xE2\x80\xA7 \xE2\x80\xA8\""),
            "\"\\u0085\xC2\x86 \\u2028\\u2029\xE2\x80\xA7 \\u2028\"");
}

}  // namespace
}  // namespace tollgate::json
