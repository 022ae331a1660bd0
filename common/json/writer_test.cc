#include "common/json/writer.h"

#include <gtest/gtest.h>

#include <vector>

namespace tollgate::json {
namespace {

TEST(Writer, WritesEveryKindOfMember) {
  EXPECT_EQ(Writer()
                .Text("text", "a\"b\n")
                .Number("number", -5)
                .Flag("yes", true)
                .Flag("no", false)
                .Null("null")
                .Raw("raw", "[1,2]")
                .Done(),
            R"({"text":"a\"b\n","number":-5,"yes":true,"no":false,"null":null,"raw":[1,2]})");
}

TEST(Writer, EscapesNames) { EXPECT_EQ(Writer().Null("a\"b").Done(), R"({"a\"b":null})"); }

TEST(Writer, AnEmptyObject) { EXPECT_EQ(Writer().Done(), "{}"); }

TEST(WriteArray, WritesWhatTheFunctionReturns) {
  const auto quote = [](const std::string& text) { return Quoted(text); };
  EXPECT_EQ(WriteArray(std::vector<std::string>{"a", "b\""}, quote), R"(["a","b\""])");
  EXPECT_EQ(WriteArray(std::vector<std::string>{}, quote), "[]");
}

}  // namespace
}  // namespace tollgate::json
