// PeopleTest with mail: the mailer delivers to a mail server of the test.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/mail/testing/smtp_listener.h"
#include "services/people/mail/mailer.h"
#include "services/people/testing/people_world.h"

namespace tollgate::people {

class MailTest : public PeopleTest {
 protected:
  MailTest() { mail_ = true; }
  void SetUp() override {
    PeopleTest::SetUp();
    if (store_) mailer_ = NewMailer();
  }
  void TearDown() override {
    mailer_.reset();
    PeopleTest::TearDown();
  }

  std::unique_ptr<Mailer> NewMailer() {
    return std::make_unique<Mailer>(
        *store_, Mailer::Options{.server = {smtp_.url(), "", "", "gate@gate.example"}});
  }
  // Sends what is due and returns the texts of the mails to this recipient.
  std::vector<std::string> Deliver(const std::string& recipient) {
    const size_t before = smtp_.mails().size();
    while (mailer_->DeliverDue() > 0) {
    }
    std::vector<std::string> texts;
    const auto mails = smtp_.mails();
    for (size_t i = before; i < mails.size(); ++i) {
      if (mails[i].to == std::vector<std::string>{"<" + recipient + ">"}) {
        texts.push_back(mails[i].text);
      }
    }
    return texts;
  }
  // The token of the link in a mail, or "".
  static std::string TokenIn(const std::string& text) {
    const size_t at = text.find("?token=");
    return at == std::string::npos ? "" : text.substr(at + 7, text.find('\r', at) - at - 7);
  }
  int64_t Waiting() {
    int64_t count = -1;
    auto read = store_->database().Read([&](PeopleTx& tx) {
      return tx.Query("SELECT count(*) FROM mail_outbox", {},
                      [&](const sql::Row& row) { count = row.Int(0); });
    });
    EXPECT_TRUE(read.ok());
    return count;
  }

  mail::SmtpListener smtp_;
  std::unique_ptr<Mailer> mailer_;
};

}  // namespace tollgate::people
