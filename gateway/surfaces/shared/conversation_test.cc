// See docs/design/wire.md 7.1, 7.3.
#include "gateway/surfaces/shared/conversation.h"

#include <gtest/gtest.h>

#include "common/json/json.h"

namespace tollgate::gateway {
namespace {

using Role = ConversationWriter::Role;

std::string Taken(ConversationWriter& writer) {
  std::string messages = writer.Take();
  EXPECT_TRUE(json::Document::ParseView(messages).ok()) << messages;
  return messages;
}

TEST(Conversation, EmptyMessagesAreNotWritten) {
  ConversationWriter writer;
  writer.Begin(Role::kUser);
  writer.Begin(Role::kAssistant);
  writer.Begin(Role::kSystem);
  EXPECT_EQ(Taken(writer), "[]");
  EXPECT_TRUE(writer.empty());
  EXPECT_EQ(writer.size().messages, 0);
}

TEST(Conversation, AnEmptyTextIsAMessage) {
  ConversationWriter writer;
  writer.Begin(Role::kUser);
  writer.Text("");
  EXPECT_EQ(Taken(writer), R"([{"role":"user","content":""}])");
  EXPECT_FALSE(writer.empty());
}

TEST(Conversation, TextsPerRole) {
  ConversationWriter writer;
  for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant}) {
    writer.Begin(role);
    writer.Text(R"(a\n)");
    writer.Text(R"(\"b\")");
  }
  EXPECT_EQ(Taken(writer), R"([{"role":"system","content":"a\n\n\n\"b\""},)"
                           R"({"role":"user","content":[{"type":"text","text":"a\n"},)"
                           R"({"type":"text","text":"\"b\""}]},)"
                           R"({"role":"assistant","content":"a\n\"b\""}])");
  EXPECT_EQ(writer.size().messages, 3);
}

TEST(Conversation, BeginStartsANewMessageUnlessItJoins) {
  ConversationWriter writer;
  writer.Begin(Role::kAssistant);
  writer.Text("a");
  writer.Begin(Role::kAssistant);
  writer.Text("b");
  writer.Begin(Role::kAssistant, /*join=*/true);
  writer.Text("c");
  writer.Begin(Role::kUser, /*join=*/true);
  writer.Text("d");
  EXPECT_EQ(Taken(writer),
            R"([{"role":"assistant","content":"a"},{"role":"assistant","content":"bc"},)"
            R"({"role":"user","content":"d"}])");
}

TEST(Conversation, ImagesMakePartsAndCountAsMedia) {
  ConversationWriter writer;
  writer.Begin(Role::kUser);
  writer.Text("look");
  writer.Image("https://x/y.png");
  writer.Image("data:image/png;base64,AA==", "low");
  EXPECT_EQ(Taken(writer), R"([{"role":"user","content":[{"type":"text","text":"look"},)"
                           R"({"type":"image_url","image_url":{"url":"https://x/y.png"}},)"
                           R"({"type":"image_url","image_url":{"url":"data:image/png;base64,AA==",)"
                           R"("detail":"low"}}]}])");
  EXPECT_EQ(writer.size().media_parts, 2);
  EXPECT_EQ(writer.size().text_bytes, 4);
}

TEST(Conversation, AssistantReasoningAndCalls) {
  ConversationWriter writer;
  writer.Begin(Role::kAssistant);
  writer.Reasoning("h");
  writer.Reasoning("m");
  writer.ToolCall("c1", "f", R"({\"a\":1})");
  writer.ToolCall("c2", "g", "{}");
  EXPECT_EQ(Taken(writer),
            R"([{"role":"assistant","content":null,"reasoning_content":"hm","reasoning":"hm",)"
            R"("tool_calls":[{"id":"c1","type":"function","function":{"name":"f",)"
            R"("arguments":"{\"a\":1}"}},{"id":"c2","type":"function","function":{"name":"g",)"
            R"("arguments":"{}"}}]}])");
  ConversationWriter silent;
  silent.Begin(Role::kAssistant);
  silent.Reasoning("hm");
  EXPECT_EQ(Taken(silent),
            R"([{"role":"assistant","content":"","reasoning_content":"hm","reasoning":"hm"}])");
}

TEST(Conversation, MessagesAreIndependent) {
  ConversationWriter writer;
  writer.Begin(Role::kAssistant);
  writer.Reasoning("hm");
  writer.ToolCall("c1", "f", "{}");
  writer.ToolResult("c1", "four");
  writer.Begin(Role::kUser);
  writer.Image("https://x");
  writer.Begin(Role::kUser);
  writer.Text("next");
  writer.Begin(Role::kAssistant);
  writer.Text("ok");
  EXPECT_EQ(Taken(writer),
            R"([{"role":"assistant","content":null,"reasoning_content":"hm","reasoning":"hm",)"
            R"("tool_calls":[{"id":"c1","type":"function","function":{"name":"f",)"
            R"("arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"four"},)"
            R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x"}}]},)"
            R"({"role":"user","content":"next"},{"role":"assistant","content":"ok"}])");
  EXPECT_EQ(writer.size().messages, 5);
}

// The size bounds the hold: no tokenizer makes more tokens of a prompt than it has bytes.
TEST(Conversation, CountsEveryByteThatATemplateSees) {
  ConversationWriter writer;
  writer.Begin(Role::kSystem);
  writer.Text("ab");
  writer.Text("cd");  // and the blank line between the texts
  EXPECT_EQ(writer.size().text_bytes, 8);
  writer.Begin(Role::kAssistant);
  writer.Reasoning("xyz");
  EXPECT_EQ(writer.size().text_bytes, 11) << "written under two names, seen once by the template";
  writer.ToolCall("c1", "f", "{}");
  const auto call = static_cast<int64_t>(
      std::string_view(R"({"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}})")
          .size());
  EXPECT_EQ(writer.size().text_bytes, 11 + call);
  writer.ToolResult("c1", "four");
  EXPECT_EQ(writer.size().text_bytes, 11 + call + 6);
}

}  // namespace
}  // namespace tollgate::gateway
