// Compares the parser with Boost.JSON on mutated documents: texts that both accept must have the
// same values, and this parser must not accept a text that Boost.JSON rejects.
#include <gtest/gtest.h>

#include <boost/json/src.hpp>
#include <random>

#include "common/json/json.h"

namespace tollgate::json {
namespace {

void ExpectSame(const Value ours, const boost::json::value& theirs) {
  switch (ours.type()) {
    case Type::kNull:
      EXPECT_TRUE(theirs.is_null());
      break;
    case Type::kBool:
      EXPECT_EQ(ours.boolean(), theirs.as_bool());
      break;
    case Type::kString:
      EXPECT_EQ(ours.string(), std::string(theirs.as_string()));
      break;
    case Type::kNumber:
      if (theirs.is_int64()) EXPECT_EQ(ours.Integer(), theirs.as_int64());
      break;
    case Type::kArray: {
      ASSERT_EQ(ours.size(), theirs.as_array().size());
      size_t i = 0;
      for (const Value element : ours) ExpectSame(element, theirs.as_array()[i++]);
      break;
    }
    case Type::kObject:
      ASSERT_EQ(ours.size(), theirs.as_object().size());
      for (const Value member : ours) {
        const auto* found = theirs.as_object().if_contains(member.key());
        ASSERT_NE(found, nullptr);
        ExpectSame(member, *found);
      }
  }
}

TEST(JsonDifferential, AgreesWithBoostJsonOnMutations) {
  const std::string seeds[] = {
      R"({"model":"ns/m","messages":[{"role":"user","content":"h\u00e9 \ud83d\ude00"}],"max_tokens":5.0})",
      R"([1,-2,3.5e+2,0,"",null,true,false,{"a":{"b":[[]]}}])",
      "{\"\xE6\x97\xA5\":\"\xF0\x9F\x98\x80 text text text text\",\"x\":[\"\\\\\",\"\\\"\"]}",
  };
  const std::string alphabet = "{}[]\",:\\u0e1.-+ \tntf\x80\xE6\xED";
  std::mt19937 random(42);
  boost::json::parse_options options;
  options.max_depth = 64;
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seeds[round % std::size(seeds)];
    for (unsigned edits = random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      const char c = alphabet[random() % alphabet.size()];
      switch (random() % 3) {
        case 0:
          text[at] = c;
          break;
        case 1:
          text.insert(at, 1, c);
          break;
        default:
          text.erase(at, 1);
      }
    }
    const auto ours = Document::ParseView(text);
    boost::json::error_code error;
    const auto theirs = boost::json::parse(text, error, {}, options);
    if (ours.ok()) {
      ASSERT_FALSE(error) << "accepted by this parser only: " << text;
      ExpectSame(ours->root(), theirs);
      ++accepted;
    } else if (!error) {
      const std::string& why = ours.error().message;
      ASSERT_TRUE(why.starts_with("duplicate key") || why.starts_with("lone surrogate") ||
                  why.starts_with("U+0000"))
          << why << ": " << text;
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace tollgate::json
