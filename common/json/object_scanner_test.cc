#include "common/json/object_scanner.h"

#include <gtest/gtest.h>

#include <string>

namespace tollgate::json {
namespace {

TEST(ObjectScanner, DetectsACompleteObjectForEverySplit) {
  const std::string escaped = R"({\"a\":\"q\\\"}\\u0022\\\\\",\"b\":[{}]})";
  for (size_t cut = 0; cut <= escaped.size(); ++cut) {
    ObjectScanner scanner;
    scanner.Add(std::string_view(escaped).substr(0, cut));
    EXPECT_EQ(scanner.complete(), cut == escaped.size()) << cut;
    scanner.Add(std::string_view(escaped).substr(cut));
    EXPECT_TRUE(scanner.complete()) << cut;
  }
}

// An engine may escape any character as \uXXXX, including quotes and braces.
TEST(ObjectScanner, DecodesUnicodeEscapes) {
  ObjectScanner scanner;
  scanner.Add(R"(\u007b\u0022a\u0022:\u0022})");
  EXPECT_FALSE(scanner.complete());
  scanner.Add(R"(\u0022\u007D)");
  EXPECT_TRUE(scanner.complete());
}

}  // namespace
}  // namespace tollgate::json
