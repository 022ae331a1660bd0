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

}  // namespace
}  // namespace tollgate::gateway
