// See docs/design/wire.md 7.2.
#include "gateway/surfaces/messages/tool_input.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/json/json.h"

namespace tollgate::gateway {
namespace {

TEST(ToolInput, IsAlwaysAnObject) {  // docs/design/wire.md 7.2: never a string
  EXPECT_EQ(ToolInput(""), "{}");
  EXPECT_EQ(ToolInput(R"( \n)"), "{}");
  EXPECT_EQ(ToolInput("{}"), "{}");
  EXPECT_EQ(ToolInput(R"(\n{\"a\" : 1.50}\n)"), "\n{\"a\" : 1.50}\n");
  EXPECT_EQ(ToolInput(R"({\"a\":\"\\ud83d\\ude00 \\ud83d\"})"), R"({"a":"\ud83d\ude00 \ud83d"})");
  for (const char* other :
       {R"({\"city\":\"Os)", "[1,2]", R"(\"text\")", "null", "5", R"({\"a\":1}{\"b\":2})", "x"}) {
    EXPECT_EQ(ToolInput(other), R"({"INVALID_JSON":")" + std::string(other) + "\"}");
  }
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += R"({\"a\":)";
  deep += "1" + std::string(300, '}');
  EXPECT_EQ(ToolInput(deep), json::Unescape(deep));
}

// Streams these pieces and returns the decoded input.
std::string Joined(const std::vector<std::string>& pieces) {
  StreamedToolInput input;
  std::string out;
  for (const std::string& piece : pieces) input.Add(piece, out);
  input.End(out);
  return json::Unescape(out);
}

TEST(ToolInput, InPieces) {
  EXPECT_EQ(Joined({}), "");
  EXPECT_EQ(Joined({" ", R"(\n)"}), "") << "without deltas clients read {}";
  EXPECT_EQ(Joined({" ", R"(\n{)", R"(\"a\":\"\\n)", R"(\"})"}), R"( )"
                                                                 "\n"
                                                                 R"({"a":"\n"})");
  EXPECT_EQ(Joined({R"({\"city\":\"Os)"}), R"({"city":"Os)") << "incomplete, as sent by the engine";
  for (const char* other : {"[1,2]", R"(\"text\")", "null", "5", "x"}) {
    EXPECT_EQ(Joined({" ", std::string(other)}), ToolInput(" " + std::string(other)));
  }
}

}  // namespace
}  // namespace tollgate::gateway
