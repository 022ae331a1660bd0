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

// The size bounds the hold: a tokenizer never makes more tokens of a prompt than it has bytes.
TEST(Conversation, CountsEveryByteThatATemplateSees) {
  ConversationWriter writer;
  writer.Begin(Role::kSystem);
  writer.Text("ab");
  writer.Text("cd");  // adds the blank line between the texts, too
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

// Writes a conversation of one-letter texts: S system, U user, A assistant, T tool result.
std::string Written(const std::string& roles, bool keeps_system_messages = false) {
  ConversationWriter writer(keeps_system_messages);
  char text = 'a';
  for (const char role : roles) {
    const std::string one(1, text++);
    if (role == 'T') {
      writer.ToolResult("id", one);
      continue;
    }
    writer.Begin(role == 'S'   ? Role::kSystem
                 : role == 'U' ? Role::kUser
                               : Role::kAssistant,
                 role == 'S');
    writer.Text(one);
    if (role == 'A') writer.ToolCall("id", "f", "{}");
  }
  const std::string json = Taken(writer);
  // Formats each message as role(texts).
  const auto document = json::Document::Parse(json);
  std::string out;
  for (const json::Value message : document->root()) {
    out += message.Find("role").string()[0];
    const json::Value content = message.Find("content");
    std::string texts = content.string();
    for (const json::Value part : content) {
      texts += (texts.empty() ? "" : "+") + part.Find("text").string();
    }
    out += "(" + texts + ")";
  }
  EXPECT_EQ(writer.size().messages, static_cast<int64_t>(document->root().size()));
  return out;
}

TEST(Conversation, LateSystemMessagesAreFoldedIntoUserMessages) {  // decision 39
  EXPECT_EQ(Written("SSUA"), "s(a\n\nb)u(c)a(d)") << "in front they are one";
  EXPECT_EQ(Written("USU"), "u(a)u(b+c)") << "into the next one";
  EXPECT_EQ(Written("USSU"), "u(a)u(b+c+d)");
  EXPECT_EQ(Written("US"), "u(a+b)") << "no next one";
  EXPECT_EQ(Written("USAU"), "u(a+b)a(c)u(d)") << "not past an answer: prefixes stay the same";
  EXPECT_EQ(Written("UASU"), "u(a)a(b)u(c+d)");
  EXPECT_EQ(Written("UAS"), "u(a)a(b)u(c)");
  EXPECT_EQ(Written("UASA"), "u(a)a(b)u(c)a(d)");
  EXPECT_EQ(Written("UASTU"), "u(a)a(b)t(d)u(c+e)") << "nothing between a call and its result";
  EXPECT_EQ(Written("UASTA"), "u(a)a(b)t(d)u(c)a(e)");
  EXPECT_EQ(Written("UATSTS"), "u(a)a(b)t(c)t(e)u(d+f)");
}

TEST(Conversation, LateSystemMessagesStayWhereTheModelTakesThem) {
  EXPECT_EQ(Written("SUSA", true), "s(a)u(b)s(c)a(d)");
  EXPECT_EQ(Written("USSU", true), "u(a)s(b\n\nc)u(d)");
}

TEST(Conversation, FoldedTextIsCounted) {
  ConversationWriter writer;
  writer.Begin(Role::kUser);
  writer.Text("12345");
  writer.Begin(Role::kSystem, true);
  writer.Text("678");
  writer.Take();
  EXPECT_EQ(writer.size().messages, 1);
  EXPECT_GE(writer.size().text_bytes, 8);
  EXPECT_LE(writer.size().text_bytes, 16);
}

}  // namespace
}  // namespace tollgate::gateway
