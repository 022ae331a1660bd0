// See docs/design/wire.md 2.1 and 2.4, H63, H67.
#include "gateway/surfaces/chat_completions/messages.h"

#include <gtest/gtest.h>

#include "gateway/surfaces/chat_completions/testing/parse.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: request builders

std::string WithMessages(const std::string& messages) {
  return R"({"model":"m","messages":[)" + messages + "]}";
}

TEST(ChatMessages, MalformedMessagesAreRefused) {  // H63
  for (const char* bad : {
           "5",
           "\"x\"",
           "[]",
           "null",
           "{}",
           R"({"content":"x"})",
           R"({"role":5,"content":"x"})",
           R"({"role":"bot","content":"x"})",
           R"({"role":"user"})",
           R"({"role":"user","content":null})",
           R"({"role":"user","content":5})",
           R"({"role":"user","content":{}})",
           R"({"role":"system","content":null})",
           R"({"role":"user","content":["x"]})",
           R"({"role":"user","content":[{"text":"x"}]})",
           R"({"role":"user","content":[{"image_url":{"url":"http://x"}}]})",
           R"({"role":"user","content":[{"type":"text"}]})",
           R"({"role":"user","content":[{"type":"text","text":5}]})",
           R"({"role":"assistant","tool_calls":{}})",
           R"({"role":"assistant","tool_calls":["x"]})",
           R"({"role":"assistant","tool_calls":[{"id":"a","function":{"arguments":"{}"}}]})",
           R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]})",
           R"({"role":"tool","content":"x","tool_call_id":5})",
       }) {
    EXPECT_EQ(Refused(WithMessages(bad)), "messages") << bad;
  }
}

TEST(ChatMessages, ValidMessagesAreForwardedUnchanged) {
  for (
      const char* good : {
          R"({"role":"user","content":[]})",
          R"({"role":"user","content":[{"type":"text","text":"x"}]})",
          R"({"role":"assistant","content":null})",
          R"({"role":"assistant"})",
          R"({"role":"assistant","content":"x","refusal":null,"audio":null,"annotations":[]})",
          R"({"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]})",
          R"({"role":"tool","content":"x","tool_call_id":"a"})",
          R"({"role":"user","name":"joe","content":"x"})",
      }) {
    EXPECT_EQ(Good(WithMessages(good)).members_json, "\"messages\":[" + std::string(good) + "]");
  }
}

TEST(ChatMessages, DeveloperBecomesSystem) {
  EXPECT_EQ(
      Good(WithMessages(R"({"content":"x","role":"developer"},{"role":"user","content":"y"})"))
          .members_json,
      R"("messages":[{"content":"x","role":"system"},{"role":"user","content":"y"}])");
}

TEST(ChatMessages, HistoryReasoningIsSentUnderBothNames) {  // docs/design/wire.md 2.4
  EXPECT_EQ(
      Good(WithMessages(R"({"role":"assistant","reasoning_content":"r\n","content":"x"})"))
          .members_json,
      R"("messages":[{"role":"assistant","reasoning_content":"r\n","reasoning":"r\n","content":"x"}])");
  EXPECT_EQ(
      Good(WithMessages(R"({"reasoning":"r","role":"assistant","content":"x"})")).members_json,
      R"("messages":[{"reasoning":"r","reasoning_content":"r","role":"assistant","content":"x"}])");
  EXPECT_EQ(
      Good(WithMessages(
               R"({"role":"assistant","reasoning":null,"reasoning_content":"r","content":"x"})"))
          .members_json,
      R"("messages":[{"role":"assistant","reasoning":"r","reasoning_content":"r","content":"x"}])");
  const char* const both =
      R"({"role":"assistant","reasoning":"a","reasoning_content":"b","content":"x"})";
  EXPECT_EQ(Good(WithMessages(both)).members_json, "\"messages\":[" + std::string(both) + "]");
  const char* const user = R"({"role":"user","reasoning":"a","content":"x"})";
  EXPECT_EQ(Good(WithMessages(user)).members_json, "\"messages\":[" + std::string(user) + "]");
}

TEST(ChatMessages, PartTypesMayHaveEscapes) {
  const CanonicalRequest request = Good(
      R"({"model":"m","messages":[{"role":"user","content":[{"type":"t\u0065xt","text":"hello"}]}]})");
  EXPECT_EQ(request.prompt.text_bytes, 5);
  EXPECT_EQ(request.prompt.media_parts, 0);
}

TEST(ChatMessages, MediaPartsAreCounted) {  // H67
  EXPECT_EQ(
      Good(
          WithMessages(
              R"({"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://a.example/"}}]})"))
          .prompt.media_parts,
      1);
  EXPECT_EQ(
      Good(WithMessages(R"({"role":"user","content":[{"type":"input_audio","input_audio":{}}]})"))
          .prompt.media_parts,
      1);
  // An image in a text part does not bypass the capability check.
  EXPECT_EQ(
      Good(
          WithMessages(
              R"({"role":"user","content":[{"type":"text","text":"x","image_url":{"url":"https://x"}}]})"))
          .prompt.media_parts,
      1);
}

TEST(ChatMessages, SizeIsAnUpperBoundOfTheText) {
  const CanonicalRequest request = Good(WithMessages(
      R"({"role":"user","content":"12345"},{"role":"assistant","content":[{"type":"text","text":"678"}],"reasoning":"90"})"));
  EXPECT_EQ(request.prompt.messages, 2);
  EXPECT_GE(request.prompt.text_bytes, 10);
  EXPECT_LE(request.prompt.text_bytes, 20);
}

TEST(ChatMessages, UrlsOfMediaAreHttpsOrData) {  // H67, decision 45
  const auto with = [](const std::string& role, const std::string& url) {
    return WithMessages(R"({"role":")" + role +
                        R"(","content":[{"type":"image_url","image_url":{"url":")" + url +
                        R"("}}]})");
  };
  for (const char* role : {"system", "user", "assistant"}) {
    for (const char* url : {"http://169.254.169.254/", "file:///etc/passwd", "https:evil", ""}) {
      EXPECT_EQ(Refused(with(role, url)), "messages") << role << url;
    }
    EXPECT_EQ(Good(with(role, "https://a.example/x")).media_hosts,
              std::set<std::string>{"a.example"});
    EXPECT_TRUE(Good(with(role, "data:image/png;base64,AA==")).media_hosts.empty());
  }
}

// The messages that the engine gets.
std::string Sent(const std::string& messages, bool keeps_system_messages = false) {
  const std::string body = WithMessages(messages);
  const auto document = json::Document::ParseView(body);
  const ParseContext context{.traits_of = [=](const std::string&) {
    return ModelTraits{.keeps_system_messages = keeps_system_messages};
  }};
  const auto request = ParseChatRequest(*document, context);
  EXPECT_TRUE(request.ok()) << messages;
  if (!request.ok()) return "";
  const std::string members = "{" + request->members_json + "}";
  const auto got = json::Document::ParseView(members);
  EXPECT_TRUE(got.ok()) << members;
  EXPECT_EQ(request->prompt.messages, static_cast<int64_t>(got->root().Find("messages").size()));
  return std::string(got->root().Find("messages").raw());
}

std::string List(std::initializer_list<std::string> messages) {
  std::string out;
  for (const std::string& message : messages) out += (out.empty() ? "" : ",") + message;
  return out;
}
std::string Of(const std::string& role, const std::string& text) {
  return R"({"role":")" + role + R"(","content":")" + text + "\"}";
}
const std::string kS = Of("system", "s");
const std::string kD = R"({"role":"developer","name":"n","content":"d"})";
const std::string kU = Of("user", "u");
const std::string kA = Of("assistant", "a");

TEST(ChatMessages, LateSystemMessagesAreFoldedIntoUserMessages) {  // decision 39
  const auto array = [](std::initializer_list<std::string> messages) {
    return "[" + List(messages) + "]";
  };
  EXPECT_EQ(Sent(List({kS, kD, kU})), array({Of("system", "s\\n\\nd"), kU}));
  EXPECT_EQ(Sent(List({kU, kD, kU})), array({kU, Of("user", "d\\n\\nu")}));
  EXPECT_EQ(Sent(List({kU, kS, kD, kU})), array({kU, Of("user", "s\\n\\nd\\n\\nu")}));
  EXPECT_EQ(Sent(List({kS, kU, kD})), array({kS, Of("user", "u\\n\\nd")}));
  EXPECT_EQ(Sent(List({kU, kS, kA, kU})), array({Of("user", "u\\n\\ns"), kA, kU}));
  EXPECT_EQ(Sent(List({kU, kA, kS})), array({kU, kA, Of("user", "s")}));
  EXPECT_EQ(Sent(List({kU, kA, kS, kA})), array({kU, kA, Of("user", "s"), kA}));
}

TEST(ChatMessages, NothingComesBetweenACallAndItsResult) {
  const std::string call =
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"i","function":{"name":"f"}}]})";
  const std::string result = R"({"role":"tool","tool_call_id":"i","content":"r"})";
  EXPECT_EQ(Sent(List({kU, call, kS, result, kU})),
            "[" + List({kU, call, result, Of("user", "s\\n\\nu")}) + "]");
}

TEST(ChatMessages, FoldedPartsStayPartsAndOtherMembersStay) {
  EXPECT_EQ(
      Sent(List({kU, R"({"role":"system","content":[{"type":"text","text":"s"}]})",
                 R"({"name":"joe","content":"v","role":"user"})"})),
      "[" + kU +
          R"(,{"name":"joe","content":[{"type":"text","text":"s"},{"type":"text","text":"v"}],)"
          R"("role":"user"}])");
  EXPECT_EQ(Sent(List({kU, Of("system", ""), kU})), "[" + List({kU, kU}) + "]");
  // Edits of other messages are not lost.
  EXPECT_EQ(Sent(List({kU, R"({"role":"assistant","content":"a","reasoning":"r"})", kS})),
            "[" +
                List({kU,
                      R"({"role":"assistant","content":"a","reasoning":"r",)"
                      R"("reasoning_content":"r"})",
                      Of("user", "s")}) +
                "]");
}

TEST(ChatMessages, LateSystemMessagesStayWhereTheModelTakesThem) {
  const std::string messages = List({kS, kS, kU + " ", kS, kA, kS});
  EXPECT_EQ(Sent(messages, true), "[" + messages + "]");
}

}  // namespace
}  // namespace tollgate::gateway
