#include "services/people/mail/mailer.h"

#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "common/base/seal.h"
#include "common/base/time_units.h"
#include "services/people/domain/totp.h"
#include "services/people/testing/mail_world.h"

namespace tollgate::people {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPassword[] = "correct horse battery";

class MailerTest : public MailTest {
 protected:
  // Invites this address to acme.
  AdminResult<PeopleStore::MadeInvitation> Invite(const std::string& email, const std::string& id,
                                                  const Actor& actor) {
    Invitation invitation;
    invitation.workspace = "acme";
    invitation.email = email;
    invitation.role = Role::ROLE_DEVELOPER;
    return store_->CreateInvitation(actor, invitation, id);
  }
};
INSTANTIATE_TEST_SUITE_P(Databases, MailerTest, ::testing::Values(Kind::kSqlite, Kind::kPostgres),
                         [](const auto& info) {
                           return info.param == Kind::kSqlite ? "sqlite" : "postgres";
                         });

// With mail, only the person who is invited gets the link.
TEST_P(MailerTest, AnInvitationGoesToThePersonOnly) {
  const Person anna = Make("anna@x.org", kPassword, Role::ROLE_OWNER);
  Deliver("anna@x.org");
  auto made = Invite("bert@x.org", "i1", {.name = "user:" + anna.user_id});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_TRUE(made->mailed);
  EXPECT_EQ(made->token, "");
  const auto texts = Deliver("bert@x.org");
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_THAT(texts[0], HasSubstr("anna@x.org invites you to the workspace acme as developer."));
  EXPECT_THAT(texts[0], HasSubstr("https://gate.example/session/v1/invitation?token="));
  EXPECT_EQ(Waiting(), 0);
  auto joined = sign_in_->ByInvitation(TokenIn(texts[0]), "Bert", kPassword, {});
  EXPECT_TRUE(joined.ok()) << joined.error().message;
}

// Without a mailable address the inviter gets the link, as if mail were off.
TEST_P(MailerTest, AnAddressThatIsNoPlainMailboxGetsNoMail) {
  auto made = Invite("b\xC3\xA4rt@x.org", "i1", kOperator);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_FALSE(made->mailed);
  EXPECT_NE(made->token, "");
  EXPECT_EQ(Waiting(), 0);
}

// Invitations must not fill anyone's mailbox.
TEST_P(MailerTest, InvitationsOfOneAddressAreLimited) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Invite("bert@x.org", "i" + std::to_string(i), kOperator).ok()) << i;
  }
  EXPECT_EQ(ReasonOf(Invite("bert@x.org", "i6", kOperator)), "THROTTLED");
  EXPECT_TRUE(Invite("carl@x.org", "i7", kOperator).ok());
  EXPECT_EQ(Waiting(), 6) << "a refused change puts no mail";
}

// The mail is written in the change's transaction and is unreadable in the database.
TEST_P(MailerTest, WhatWaitsIsSealed) {
  ASSERT_TRUE(Invite("bert@x.org", "i1", kOperator).ok());
  std::string stored;
  ASSERT_TRUE(store_->database()
                  .Read([&](PeopleTx& tx) {
                    return tx.Query("SELECT sealed FROM mail_outbox", {},
                                    [&](const sql::Row& row) { stored = row.Text(0); });
                  })
                  .ok());
  EXPECT_GT(stored.size(), 100U);
  EXPECT_THAT(stored, Not(HasSubstr("token")));
  EXPECT_THAT(stored, Not(HasSubstr("invite")));
}

TEST_P(MailerTest, ChangesOfSecurityAreTold) {
  const Person anna = Make("anna@x.org", kPassword);
  auto texts = Deliver("anna@x.org");
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_THAT(texts[0], HasSubstr("password of your Tollgate account was changed"));
  EXPECT_THAT(texts[0], HasSubstr("IP address of the request: 203.0.113.1"));
  const std::string cookie = Cookie("anna@x.org", kPassword);
  auto totp = sign_in_->StartTotp(cookie);
  ASSERT_TRUE(totp.ok());
  const auto told = [&](const char* what) {
    const auto mails = Deliver("anna@x.org");
    ASSERT_EQ(mails.size(), 1U) << what;
    EXPECT_THAT(mails[0], HasSubstr(what));
  };
  std::string secret;
  ASSERT_TRUE(store_->database()
                  .Read([&](PeopleTx& tx) -> AdminResult<void> {
                    auto person = FindPerson(tx, anna.user_id);
                    secret = *Unseal(std::string(32, 's'), "totp " + anna.user_id,
                                     (*person)->totp_pending);
                    return {};
                  })
                  .ok());
  ASSERT_TRUE(
      sign_in_->ConfirmTotp(cookie, TotpCode(secret, clock_.WallUs() / kTotpStepUs), {}).ok());
  told("Two-factor authentication was turned on");
  AccessToken token;
  token.user_id = anna.user_id;
  token.name = "ci";
  token.scopes = {"viewer"};
  token.expires_us = clock_.WallUs() + 1'000 * kSecondUs;
  ASSERT_TRUE(store_->CreateToken({.name = "user:" + anna.user_id}, token, "t1").ok());
  told("access token was created");
  ASSERT_TRUE(store_->CreateToken({.name = "user:" + anna.user_id}, token, "t1").ok());
  EXPECT_TRUE(Deliver("anna@x.org").empty()) << "the same request again";
  ASSERT_TRUE(sign_in_->DisableTotp(cookie, {}).ok());
  told("Two-factor authentication was turned off");
  ASSERT_TRUE(sign_in_->SetPassword(cookie, kPassword, "another good one", {}).ok());
  told("password of your Tollgate account was changed");
}

// A mail that the server does not accept is retried with growing delays and the same Message-ID,
// and arrives once.
TEST_P(MailerTest, AServerThatIsDownGetsTheMailLater) {
  ASSERT_TRUE(Invite("bert@x.org", "i1", kOperator).ok());
  smtp_.Refuse(2);
  EXPECT_EQ(mailer_->DeliverDue(), 1);
  EXPECT_EQ(mailer_->DeliverDue(), 0) << "not due yet";
  clock_.Advance(2 * kSecondUs);
  EXPECT_EQ(mailer_->DeliverDue(), 1);
  clock_.Advance(2 * kSecondUs);
  EXPECT_EQ(mailer_->DeliverDue(), 0) << "twice as long";
  clock_.Advance(2 * kSecondUs);
  EXPECT_EQ(Deliver("bert@x.org").size(), 1U);
  clock_.Advance(3600 * kSecondUs);
  EXPECT_TRUE(Deliver("bert@x.org").empty());
  EXPECT_EQ(Waiting(), 0);
}

TEST_P(MailerTest, AMailThatNoTryBringsIsGivenUp) {
  ASSERT_TRUE(Invite("bert@x.org", "i1", kOperator).ok());
  smtp_.Refuse(1000);
  int tries = 0;
  for (int half_day = 0; half_day < 16 && Waiting() > 0; ++half_day) {
    tries += mailer_->DeliverDue();
    clock_.Advance(int64_t{12} * 3600 * kSecondUs);
  }
  EXPECT_EQ(Waiting(), 0);
  EXPECT_GT(tries, 10);
  EXPECT_TRUE(smtp_.mails().empty());
}

// Each mail is claimed by exactly one replica.
TEST_P(MailerTest, SeveralReplicasSendEachMailOnce) {
  constexpr int kMails = 60;
  for (int i = 0; i < kMails; ++i) {
    const std::string email = "p" + std::to_string(i) + "@x.org";
    ASSERT_TRUE(Invite(email, "i" + std::to_string(i), kOperator).ok());
  }
  std::vector<std::thread> replicas;
  for (int i = 0; i < 3; ++i) {
    replicas.emplace_back([this] {
      const auto mailer = NewMailer();
      while (Waiting() > 0) mailer->DeliverDue();
    });
  }
  for (std::thread& replica : replicas) replica.join();
  std::set<std::string> recipients;
  const auto mails = smtp_.mails();
  for (const auto& mail : mails) recipients.insert(mail.to.at(0));
  EXPECT_EQ(mails.size(), size_t{kMails});
  EXPECT_EQ(recipients.size(), size_t{kMails});
}

// If a replica crashes while sending, another one sends the mail once the claim has expired.
TEST_P(MailerTest, AClaimRunsOut) {
  ASSERT_TRUE(Invite("bert@x.org", "i1", kOperator).ok());
  ASSERT_TRUE(store_->database()
                  .Touch([&](PeopleTx& tx) -> AdminResult<void> {
                    auto due = MailOutbox::Due(tx, 10);
                    EXPECT_EQ(due->size(), 1U);
                    auto claimed =
                        MailOutbox::Claim(tx, due->front(), tx.now_us() + 120 * kSecondUs);
                    EXPECT_TRUE(*claimed);
                    EXPECT_FALSE(*MailOutbox::Claim(tx, due->front(), tx.now_us() + kSecondUs));
                    return {};
                  })
                  .ok());
  EXPECT_TRUE(Deliver("bert@x.org").empty());
  clock_.Advance(121 * kSecondUs);
  EXPECT_EQ(Deliver("bert@x.org").size(), 1U);
}

// An outbox that nothing drains must not grow without limit; changes then succeed without their
// mail.
TEST_P(MailerTest, TheOutboxIsBounded) {
  ASSERT_TRUE(store_->database()
                  .Write([&](PeopleTx& tx) -> AdminResult<void> {
                    for (int i = 0; i < 10'000; ++i) {
                      auto added = tx.Execute(
                          "INSERT INTO mail_outbox (mail_id, kind, recipient, sealed, attempts, "
                          "next_at_us, created_at_us, expires_at_us) VALUES ($1, 'x', 'a@x.org', "
                          "$2, 0, $3, $3, $3)",
                          {std::to_string(i), sql::Param::Blob("x"), tx.now_us()});
                      if (!added) return Fail{added.error()};
                    }
                    return {};
                  })
                  .ok());
  auto made = Invite("bert@x.org", "i1", kOperator);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_FALSE(made->mailed);
  EXPECT_NE(made->token, "") << "whoever invites gets the link";
  EXPECT_EQ(Waiting(), 10'000);
}

// Stop returns at once, also while a mail server hangs.
TEST_P(MailerTest, TheThreadSendsAndStops) {
  mailer_->Start();
  ASSERT_TRUE(Invite("bert@x.org", "i1", kOperator).ok());
  while (Waiting() > 0) std::this_thread::yield();
  EXPECT_EQ(smtp_.mails().size(), 1U);
  mailer_->Stop();
}

}  // namespace
}  // namespace tollgate::people
