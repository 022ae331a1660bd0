#include "common/mail/mail.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "common/mail/testing/smtp_listener.h"

namespace tollgate::mail {
namespace {

constexpr int kTimeoutMs = 60'000;

TEST(MailTest, AddressesThatCouldChangeAMailAreRefused) {
  for (const char* email : {"ann@example.com", "a.b+c@x.example", "o'neil@example.co"}) {
    EXPECT_TRUE(IsEmail(email)) << email;
  }
  for (const char* email :
       {"", "ann", "@example.com", "ann@", "ann@example.com\r\nBcc: x@y.z", "ann@example.com\n",
        "ann @example.com", "ann@exa mple.com", "<ann@example.com>", "ann@example.com,b@c.d",
        "ann@b@c.d", "\"a b\"@example.com", "ann@.example", "ann@example.", "ann@-example",
        "ann\t@example.com", "-oX@example.com", "ann@ex\xC3\xA4mple.com"}) {
    EXPECT_FALSE(IsEmail(email)) << email;
  }
  EXPECT_FALSE(IsEmail(std::string(300, 'a') + "@example.com"));
}

TEST(MailTest, AnAddressWithALineEndReachesNoServer) {
  SmtpListener smtp;
  const MailServer server{smtp.url(), "", "", "billing@gate.example"};
  const Sent sent =
      SendMail(server, "ann@example.com>\r\nRCPT TO:<eve@example.com", "x\r\n", kTimeoutMs);
  EXPECT_FALSE(sent.ok);
  EXPECT_TRUE(smtp.commands().empty());
}

TEST(MailTest, WithoutStarttlsNoMailLeavesTheMachine) {
  SmtpListener smtp{INADDR_ANY};  // offers no STARTTLS
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  const MailServer server{smtp.url(name), "user", "secret", "billing@gate.example", ""};
  const Sent sent = SendMail(server, "ann@example.com", "x\r\n", kTimeoutMs);
  EXPECT_FALSE(sent.ok);
  EXPECT_TRUE(smtp.mails().empty());
  EXPECT_FALSE(smtp.commands().empty()) << "it was reached: " << sent.result;
  for (const std::string& command : smtp.commands()) {
    EXPECT_FALSE(command.starts_with("AUTH") || command.starts_with("MAIL")) << command;
  }
}

TEST(MailTest, AMailHasOneHeaderAndItsBody) {
  SmtpListener smtp;
  const MailServer server{smtp.url(), "", "", "gate@gate.example", ""};
  const std::string text = MailText({.from = server.from,
                                     .to = "ann@example.com",
                                     .subject = "A subject",
                                     .id = "m1",
                                     .at_us = 1'763'700'000'000'000,
                                     .body = "first\r\n.\r\nlast\r\n"});
  const Sent sent = SendMail(server, "ann@example.com", text, kTimeoutMs);
  ASSERT_TRUE(sent.ok) << sent.result;
  ASSERT_EQ(smtp.mails().size(), 1U);
  const std::string got = smtp.mails().front().text;
  for (const char* part : {"From: Tollgate <gate@gate.example>\r\n", "Subject: A subject\r\n",
                           "Message-ID: <m1@gate.example>\r\n",
                           "Date: Fri, 21 Nov 2025 04:40:00 +0000\r\n", "\r\n\r\nfirst\r\n"}) {
    EXPECT_NE(got.find(part), std::string::npos) << part << " is not in\n" << got;
  }
  EXPECT_NE(got.find("last"), std::string::npos) << "a line with one dot does not end the mail";
}

// Text that a person wrote stays on one line.
TEST(MailTest, OneLineHasNoLineEnds) {
  EXPECT_EQ(OneLine("a\r\nBcc: x@y.z\t\x7F", 100), "a  Bcc: x@y.z  ");
  EXPECT_EQ(OneLine("abcdef", 3), "abc");
}

TEST(MailTest, SettingsThatCannotBeAreRefused) {
  const auto check = [](MailServer server, const std::string& file = "") {
    auto checked = CheckMailServer("auth.people", file, server);
    return checked.ok() ? "" : checked.error().internal;
  };
  const MailServer good{"smtp://mail.example:25", "", "", "gate@example.com", ""};
  EXPECT_EQ(check(good), "");
  MailServer bad = good;
  bad.url = "http://mail.example";
  EXPECT_NE(check(bad).find("auth.people.smtp_url"), std::string::npos);
  bad = good;
  bad.from = "Gate <gate@example.com>";
  EXPECT_NE(check(bad).find("auth.people.mail_from"), std::string::npos);
  EXPECT_NE(check(good, "/nowhere").find("belong together"), std::string::npos);
  bad = good;
  bad.user = "gate";
  EXPECT_NE(check(bad, "/nowhere").find("smtp_password_file"), std::string::npos);
}

// A stopping process does not wait for a server that hangs.
TEST(MailTest, AnAbortedSendEndsSoon) {
  SmtpListener smtp;
  const std::atomic<bool> abort = true;
  const MailServer server{smtp.url(), "", "", "gate@gate.example", ""};
  EXPECT_FALSE(SendMail(server, "ann@example.com", "x\r\n", 60'000, &abort).ok);
}

}  // namespace
}  // namespace tollgate::mail
