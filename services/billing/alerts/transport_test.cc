#include "services/billing/alerts/transport.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/base/crypto.h"
#include "common/mail/testing/smtp_listener.h"
#include "services/billing/alerts/alert_text.h"
#include "services/billing/alerts/testing/hook_receiver.h"

namespace tollgate::billing::alerts {
namespace {

constexpr int kTimeoutMs = 60'000;

WebhookCall Call(const std::string& url, bool allow_private) {
  WebhookCall call;
  call.url = url;
  call.body = R"({"id":"n1"})";
  call.notice = "n1";
  call.signature = Sign("whsec_x", 1'763'700'000, call.body);
  call.timeout_ms = kTimeoutMs;
  call.allow_private = allow_private;
  return call;
}

TEST(TransportTest, AWebhookIsSignedOverItsTimeAndBody) {
  HookReceiver receiver;
  const Sent sent = SendWebhook(Call(receiver.url(), true));
  EXPECT_TRUE(sent.ok) << sent.result;
  ASSERT_EQ(receiver.requests().size(), 1u);
  const http::HttpRequest request = receiver.requests().front();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.header("content-type"), "application/json");
  EXPECT_EQ(request.header("tollgate-notice"), "n1");
  EXPECT_EQ(request.header("tollgate-signature"),
            "t=1763700000,v1=" + HexEncode(HmacSha256("whsec_x", "1763700000." + request.body)));
}

TEST(TransportTest, AWebhookToAnAddressThatIsNotPublicIsRefusedBeforeAnythingIsSent) {
  HookReceiver receiver;
  const std::string port = receiver.url().substr(receiver.url().rfind(':'));
  EXPECT_FALSE(SendWebhook(Call(receiver.url(), false)).ok);
  // A name that resolves to an address of this machine passes the check of the URL, but the
  // connection is refused.
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  const Sent sent = SendWebhook(Call("https://" + std::string(name) + port, false));
  EXPECT_EQ(sent.result, "refused: the host is not a public address");
  EXPECT_TRUE(receiver.requests().empty());
}

TEST(TransportTest, RedirectsAreNotFollowedAndLongAnswersAreNotRead) {
  HookReceiver receiver;
  receiver.Answer({302, 503, 0});
  EXPECT_EQ(SendWebhook(Call(receiver.url(), true)).result, "302");
  EXPECT_EQ(receiver.requests().size(), 1u);
  EXPECT_EQ(SendWebhook(Call(receiver.url(), true)).result, "503");
  EXPECT_FALSE(SendWebhook(Call(receiver.url(), true)).ok) << "the connection broke";
  receiver.AnswerBody(std::string(8'000'000, 'x'));
  const Sent sent = SendWebhook(Call(receiver.url(), true));
  EXPECT_TRUE(sent.ok) << sent.result;
}

Delivery Mail() {
  Delivery delivery;
  delivery.workspace = "acme";
  delivery.id = "r1";
  delivery.notice = "n1";
  delivery.kind = "low_balance";
  delivery.payload = R"({"available_usd":"4.50","low_balance_usd":"5.00"})";
  delivery.target = "ann@example.com";
  delivery.created_us = 1'763'700'000'000'000;
  return delivery;
}

TEST(TransportTest, AMailCarriesTheNoticeAndItsId) {
  mail::SmtpListener smtp;
  const MailServer server{smtp.url(), "", "", "billing@gate.example"};
  const Sent sent =
      mail::SendMail(server, "ann@example.com", MailText(Mail(), server.from), kTimeoutMs);
  EXPECT_TRUE(sent.ok) << sent.result;
  ASSERT_EQ(smtp.mails().size(), 1u);
  const mail::SmtpListener::Mail mail = smtp.mails().front();
  EXPECT_TRUE(mail.from.starts_with("<billing@gate.example>")) << mail.from;
  EXPECT_EQ(mail.to, std::vector<std::string>{"<ann@example.com>"});
  for (const char* part :
       {"To: <ann@example.com>\r\n", "Subject: Low credit in workspace acme\r\n",
        "Message-ID: <n1.r1@gate.example>\r\n", "Date: Fri, 21 Nov 2025 04:40:00 +0000\r\n",
        "charset=utf-8", "$4.50", "$5.00"}) {
    EXPECT_NE(mail.text.find(part), std::string::npos) << part << " is not in\n" << mail.text;
  }
}

TEST(TransportTest, AReasonOfAProviderStaysInItsLineOfTheBody) {
  AlertState state;
  state.kind = AlertKind::kReloadPaused;
  AlertSetting setting;
  setting.workspace = "acme";
  Facts facts;
  facts.reload_reason = "card\r\n.\r\nMAIL FROM:<x>\r\nBcc: eve@example.com";
  Delivery delivery = Mail();
  delivery.kind = "reload_paused";
  delivery.payload = NoticeJson("n1", state, setting, facts, "", 1);
  const std::string text = MailText(delivery, "billing@gate.example");
  EXPECT_EQ(text.find("\r\nBcc"), std::string::npos) << text;
  EXPECT_EQ(text.find("\r\n."), std::string::npos) << text;
}

}  // namespace
}  // namespace tollgate::billing::alerts
