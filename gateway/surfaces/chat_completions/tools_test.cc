#include "gateway/surfaces/chat_completions/tools.h"

#include <gtest/gtest.h>

#include "gateway/surfaces/chat_completions/testing/parse.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: request builders

const std::string kTool =
    R"({"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}})";
const std::string kOther = R"({"type":"function","function":{"name":"g"}})";

TEST(ChatTools, ToolsAreForwardedAndMeasured) {
  const CanonicalRequest request =
      Good(Body("\"tools\":[" + kTool + "],\"tool_choice\":\"required\""));
  EXPECT_TRUE(request.has_tools);
  EXPECT_EQ(request.members_json,
            kMessages + ",\"tools\":[" + kTool + "],\"tool_choice\":\"required\"");
  EXPECT_GE(request.prompt.text_bytes, static_cast<int64_t>(kTool.size()));
}

TEST(ChatTools, BadDefinitionsNameTheParam) {
  for (const char* bad :
       {"{}", "5", "[5]", "[{}]", R"([{"type":"function"}])",
        R"([{"type":"function","function":{}}])", R"([{"type":"function","function":{"name":5}}])",
        R"([{"type":"function","function":{"name":"f","parameters":[]}}])",
        R"([{"type":"function","function":{"name":"f","description":5}}])",
        R"([{"type":"custom","custom":{"name":"f"}}])"}) {
    EXPECT_EQ(Refused(Body("\"tools\":" + std::string(bad))), "tools") << bad;
  }
}

TEST(ChatTools, ToolChoicesAreCheckedAgainstTheTools) {
  const std::string tools = "\"tools\":[" + kTool + "," + kOther + "],\"tool_choice\":";
  for (const char* good :
       {"\"none\"", "\"auto\"", "\"required\"", R"({"type":"function","function":{"name":"g"}})"}) {
    const std::string members = Good(Body(tools + good)).members_json;
    EXPECT_NE(members.find("\"tool_choice\":" + std::string(good)), std::string::npos) << members;
  }
  for (
      const char* bad :
      {"\"some\"", "5", "[]", "{}", R"({"type":"function"})",
       R"({"type":"function","function":{"name":"h"}})",
       R"({"type":"custom","custom":{"name":"f"}})",
       R"({"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}})",
       R"({"type":"allowed_tools","allowed_tools":{"mode":"x","tools":[{"type":"function","function":{"name":"f"}}]}})"}) {
    EXPECT_EQ(Refused(Body(tools + bad)), "tool_choice") << bad;
  }
  EXPECT_EQ(Refused(Body(R"("tool_choice":"required")")), "tool_choice");
  EXPECT_EQ(Good(Body(R"("tools":[],"tool_choice":"auto")")).members_json, kMessages);
}

TEST(ChatTools, AllowedToolsReduceTheList) {
  const CanonicalRequest request = Good(Body(
      "\"tools\":[" + kTool + "," + kOther +
      R"(],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"g"}}]}})"));
  EXPECT_EQ(request.members_json,
            kMessages + ",\"tools\":[" + kOther + "],\"tool_choice\":\"required\"");
}

}  // namespace
}  // namespace tollgate::gateway
