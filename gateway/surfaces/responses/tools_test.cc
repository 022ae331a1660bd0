// Tools and tool_choice. See docs/design/wire.md 5.1, 5.2, 7.3, decision 27.
#include "gateway/surfaces/responses/tools.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

Result<ResponsesTools> Read(const std::string& tools, const std::string& choice = "null") {
  const std::string text = R"({"tools":)" + tools + R"(,"choice":)" + choice + "}";
  const auto document = json::Document::ParseView(text);
  EXPECT_TRUE(document.ok()) << text;
  return ReadResponsesTools(document->root().Find("tools"), document->root().Find("choice"));
}

ResponsesTools Good(const std::string& tools, const std::string& choice = "null") {
  auto read = Read(tools, choice);
  EXPECT_TRUE(read.ok()) << tools << choice << (read.ok() ? "" : read.error().ToString());
  return read.ok() ? std::move(*read) : ResponsesTools{};
}

std::string Refused(const std::string& tools, const std::string& choice = "null") {
  const auto read = Read(tools, choice);
  if (read.ok()) return "accepted";
  EXPECT_EQ(read.error().id, ErrorId::kBadRequest);
  return read.error().param;
}

const std::string kF = R"({"type":"function","name":"f","parameters":{"type":"object"}})";
const std::string kG = R"({"type":"function","name":"g"})";
const std::string kNestedF =
    R"({"type":"function","function":{"name":"f","parameters":{"type":"object"}}})";
const std::string kNestedG = R"({"type":"function","function":{"name":"g"}})";
const std::string kEchoF =
    R"({"type":"function","name":"f","description":null,"parameters":{"type":"object"},"strict":null})";
const std::string kEchoG =
    R"({"type":"function","name":"g","description":null,"parameters":null,"strict":null})";
const std::string kBoth = "[" + kF + "," + kG + "]";

TEST(ResponsesTools, FlatToolsAreNestedAndEchoedWithAllKeys) {
  const ResponsesTools read = Good(kBoth);
  EXPECT_EQ(read.tools, "[" + kNestedF + "," + kNestedG + "]");
  EXPECT_EQ(read.tool_choice, "");
  EXPECT_EQ(read.echoed_tools, "[" + kEchoF + "," + kEchoG + "]");
  EXPECT_EQ(read.echoed_choice, "\"auto\"");
  const ResponsesTools whole = Good(
      R"([{"type":"function","strict":true,"parameters":{},"description":"d","name":"n","other":1}])");
  EXPECT_EQ(
      whole.tools,
      R"([{"type":"function","function":{"name":"n","description":"d","parameters":{},"strict":true}}])");
  EXPECT_EQ(whole.echoed_tools,
            R"([{"type":"function","name":"n","description":"d","parameters":{},"strict":true}])");
}

TEST(ResponsesTools, WithoutTools) {
  for (const char* none : {"null", "[]"}) {
    const ResponsesTools read = Good(none, "\"none\"");
    EXPECT_EQ(read.tools, "");
    EXPECT_EQ(read.tool_choice, "");
    EXPECT_EQ(read.echoed_tools, "[]");
    EXPECT_EQ(read.echoed_choice, "\"none\"");
  }
}

TEST(ResponsesTools, UnsupportedToolsAreOmitted) {
  const ResponsesTools read =
      Good(R"([{"type":"web_search"},)" + kF +
           R"(,{"type":"custom","name":"c"},{"type":"mcp","server_label":"s"},
               {"type":"local_shell"},{"type":"something_new"}])");
  EXPECT_EQ(read.tools, "[" + kNestedF + "]");
  EXPECT_EQ(read.echoed_tools, "[" + kEchoF + "]");
  EXPECT_EQ(Good(R"([{"type":"web_search"}])").tools, "");
}

TEST(ResponsesTools, NamespacesAreFlattened) {
  const ResponsesTools read =
      Good(R"([{"type":"namespace","name":"ns","description":"d","tools":[)" + kG +
           R"(,{"type":"custom","name":"c"}]},)" + kF + "]");
  EXPECT_EQ(read.tools, "[" + kNestedG + "," + kNestedF + "]");
  EXPECT_EQ(read.echoed_tools, "[" + kEchoG + "," + kEchoF + "]");
  EXPECT_EQ(read.namespaces, (std::map<std::string, std::string>{{"g", "\"ns\""}}));
  // If two functions have the same name, the first is used.
  EXPECT_EQ(Good("[" + kG + R"(,{"type":"namespace","name":"ns","tools":[)" + kG + "]}]").tools,
            "[" + kNestedG + "]");
}

TEST(ResponsesTools, Choices) {
  for (const char* word : {"\"auto\"", "\"none\"", "\"required\""}) {
    const ResponsesTools read = Good(kBoth, word);
    EXPECT_EQ(read.tool_choice, word);
    EXPECT_EQ(read.echoed_choice, word);
  }
  const ResponsesTools named = Good(kBoth, R"({"type":"function","name":"g"})");
  EXPECT_EQ(named.tool_choice, R"({"type":"function","function":{"name":"g"}})");
  EXPECT_EQ(named.echoed_choice, R"({"type":"function","name":"g"})");
}

TEST(ResponsesTools, OnlyAllowedToolsAreSent) {
  const std::string choice =
      R"({"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"},)"
      R"({"type":"image_generation"}]})";
  const ResponsesTools read = Good(kBoth, choice);
  EXPECT_EQ(read.tools, "[" + kNestedG + "]");
  EXPECT_EQ(read.tool_choice, "\"required\"");
  EXPECT_EQ(read.echoed_tools, "[" + kEchoF + "," + kEchoG + "]");
  EXPECT_EQ(read.echoed_choice, choice);
  // None of the allowed tools is supported.
  const ResponsesTools nothing =
      Good(kBoth, R"({"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"}]})");
  EXPECT_EQ(nothing.tools, "");
  EXPECT_EQ(nothing.tool_choice, "");
}

TEST(ResponsesTools, ChoicesOfOmittedToolsAreIgnored) {
  const std::string tools = "[" + kF + R"(,{"type":"web_search"},{"type":"custom","name":"c"}])";
  for (const char* choice :
       {R"({"type":"web_search"})", R"({"type":"custom","name":"c"})",
        R"({"type":"function","name":"c"})", R"({"type":"mcp","server_label":"s"})"}) {
    const ResponsesTools read = Good(tools, choice);
    EXPECT_EQ(read.tools, "[" + kNestedF + "]") << choice;
    EXPECT_EQ(read.tool_choice, "") << choice;
    EXPECT_EQ(read.echoed_choice, "\"auto\"") << choice;
  }
  EXPECT_EQ(Good(R"([{"type":"web_search"}])", "\"required\"").echoed_choice, "\"auto\"");
}

TEST(ResponsesTools, InvalidToolsAreRefused) {
  for (const char* tools :
       {"{}", "[5]", "[{}]", R"([{"type":"function"}])", R"([{"type":"function","name":""}])",
        R"([{"type":"function","name":"f","parameters":[]}])",
        R"([{"type":"function","name":"f","description":1}])",
        R"([{"type":"function","function":{"name":"f"}}])",
        R"([{"type":"namespace","name":"n","tools":[{"type":"function"}]}])"}) {
    EXPECT_EQ(Refused(tools), "tools") << tools;
  }
  for (const char* choice :
       {"5", "\"any\"", "{}", R"({"type":"function"})", R"({"type":"function","name":"h"})",
        R"({"type":"function","function":{"name":"f"}})",
        R"({"type":"allowed_tools","mode":"none","tools":[{"type":"function","name":"f"}]})",
        R"({"type":"allowed_tools","mode":"auto","tools":[]})",
        R"({"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"h"}]})"}) {
    EXPECT_EQ(Refused(kBoth, choice), "tool_choice") << choice;
  }
  EXPECT_EQ(Refused("null", "\"required\""), "tool_choice");
  EXPECT_EQ(Refused("[]", R"({"type":"function","name":"f"})"), "tool_choice");
}

}  // namespace
}  // namespace tollgate::gateway
