// Forgotten passwords.
#include <gmock/gmock.h>

#include <ctime>

#include "common/base/seal.h"
#include "common/base/time_units.h"
#include "services/people/domain/totp.h"
#include "services/people/testing/mail_world.h"

namespace tollgate::people {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLinkPassword[] = "correct horse battery", kOther[] = "another good password";

class SignInLinkTest : public MailTest {
 protected:
  // Requests a reset and returns the token of the mail; "" if none was sent.
  std::string ResetToken(const std::string& email, const std::string& address = "192.0.2.1") {
    Deliver(email);
    auto asked = sign_in_->RequestPasswordReset(email, {.address = address});
    EXPECT_TRUE(asked.ok()) << asked.error().message;
    const auto texts = Deliver(email);
    return texts.empty() ? "" : TokenIn(texts.back());
  }
};
INSTANTIATE_TEST_SUITE_P(Databases, SignInLinkTest,
                         ::testing::Values(Kind::kSqlite, Kind::kPostgres), [](const auto& info) {
                           return info.param == Kind::kSqlite ? "sqlite" : "postgres";
                         });

TEST_P(SignInLinkTest, AForgottenPasswordIsSetOnceWithinAnHour) {
  Make("anna@x.org", kLinkPassword);
  const std::string session = Cookie("anna@x.org", kLinkPassword);
  const std::string real = ResetToken("anna@x.org");
  ASSERT_EQ(real.size(), 43U);
  EXPECT_TRUE(Lives(session)) << "asking changes nothing";
  EXPECT_EQ(ReasonOf(sign_in_->ResetPassword(real, "short", {})), "WEAK_PASSWORD");
  auto reset = sign_in_->ResetPassword(real, kOther, {.address = "192.0.2.1"});
  ASSERT_TRUE(reset.ok()) << reset.error().message;
  EXPECT_TRUE(Lives(reset->session.cookie));
  EXPECT_FALSE(Lives(session)) << "other sessions end";
  EXPECT_EQ(Cookie("anna@x.org", kLinkPassword), "");
  EXPECT_NE(Cookie("anna@x.org", kOther), "");
  EXPECT_EQ(ReasonOf(sign_in_->ResetPassword(real, kLinkPassword, {})), "LINK_INVALID") << "once";
  EXPECT_THAT(Actions(), Contains("user.request_password_reset"));
  EXPECT_THAT(Actions(), Contains("user.set_password").Times(2));
  const auto told = Deliver("anna@x.org");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], HasSubstr("password of your Tollgate account was changed"));

  clock_.Advance(3600 * kSecondUs);
  const std::string late = ResetToken("anna@x.org");
  clock_.Advance(3601 * kSecondUs);
  EXPECT_EQ(ReasonOf(sign_in_->ResetPassword(late, kLinkPassword, {})), "LINK_INVALID")
      << "an hour";
  const std::string first = ResetToken("anna@x.org"), second = ResetToken("anna@x.org");
  EXPECT_EQ(ReasonOf(sign_in_->ResetPassword(first, kLinkPassword, {})), "LINK_INVALID")
      << "a new link replaces the earlier one";
  EXPECT_TRUE(sign_in_->ResetPassword(second, kLinkPassword, {}).ok());
}

// The database holds only a hash of a link's secret.
TEST_P(SignInLinkTest, TheTokenIsStoredHashed) {
  Make("anna@x.org", kLinkPassword);
  const std::string token = ResetToken("anna@x.org");
  std::string stored;
  ASSERT_TRUE(store_->database()
                  .Read([&](PeopleTx& tx) {
                    return tx.Query("SELECT token_hash FROM password_reset", {},
                                    [&](const sql::Row& row) { stored = row.Text(0); });
                  })
                  .ok());
  EXPECT_EQ(stored, HashSecret(token));
  EXPECT_EQ(Waiting(), 0) << "the mail is gone with its link";
}

// Access to the mailbox does not replace the second step.
TEST_P(SignInLinkTest, TheSecondStepIsWanted) {
  const Person anna = Make("anna@x.org", kLinkPassword);
  const std::string cookie = Cookie("anna@x.org", kLinkPassword);
  ASSERT_TRUE(sign_in_->StartTotp(cookie).ok());
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
  auto reset = sign_in_->ResetPassword(ResetToken("anna@x.org"), kOther, {});
  ASSERT_TRUE(reset.ok()) << reset.error().message;
  EXPECT_EQ(reset->session.cookie, "");
  ASSERT_NE(reset->challenge, "");
  EXPECT_EQ(ReasonOf(sign_in_->SecondStep(reset->challenge, "000000", "", {})), "SIGN_IN_FAILED");
  clock_.Advance(30 * kSecondUs);
  EXPECT_TRUE(
      sign_in_
          ->SecondStep(reset->challenge, TotpCode(secret, clock_.WallUs() / kTotpStepUs), "", {})
          .ok());
}

// Every address causes the same statements, rows and answer. An address without an account gets no
// mail.
TEST_P(SignInLinkTest, AskingDoesNotTellWhoExists) {
  Make("anna@x.org", kLinkPassword);
  const Person gone = Make("gone@x.org", kLinkPassword);
  ASSERT_TRUE(
      store_->ChangePerson(kOperator, gone.user_id, {.state = PersonState::kDisabled}).ok());
  Deliver("");
  int64_t before = Waiting();
  const auto audited = Actions().size();
  for (const char* email : {"anna@x.org", "nobody@x.org", "gone@x.org"}) {
    EXPECT_TRUE(sign_in_->RequestPasswordReset(email, {.address = "192.0.2.1"}).ok()) << email;
    EXPECT_EQ(Waiting(), ++before) << email;
  }
  EXPECT_EQ(Actions().size(), audited);
  EXPECT_TRUE(sign_in_->RequestPasswordReset("no address\r\nBcc: x@y.z", {}).ok());
  EXPECT_EQ(Waiting(), before);
  const size_t sent = smtp_.mails().size();
  EXPECT_EQ(Deliver("anna@x.org").size(), 1U);
  EXPECT_EQ(smtp_.mails().size(), sent + 1) << "nobody else got one";
  EXPECT_EQ(Waiting(), 0);
}

TEST_P(SignInLinkTest, AskingTakesAsLongForEachAddress) {
  Make("anna@x.org", kLinkPassword);
  const auto spent_us = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1'000'000 + time.tv_nsec / 1000;
  };
  const auto measure = [&](const std::string& email) {
    int64_t best = INT64_MAX;
    for (int i = 0; i < 5; ++i) {
      clock_.Advance(1200 * kSecondUs);
      const int64_t begin = spent_us();
      EXPECT_TRUE(sign_in_->RequestPasswordReset(email, {.address = "192.0.2.1"}).ok());
      best = std::min<int64_t>(best, spent_us() - begin);
    }
    return best;
  };
  measure("warm@x.org");
  const int64_t known = measure("anna@x.org"), unknown = measure("nobody@x.org");
  EXPECT_GT(unknown, known / 3) << known << " µs and " << unknown << " µs";
  EXPECT_GT(known, unknown / 3) << known << " µs and " << unknown << " µs";
}

TEST_P(SignInLinkTest, AskingIsLimitedByAccountAndAddress) {
  for (const char* email : {"anna@x.org", "nobody@x.org"}) {
    for (int i = 0; i < 3; ++i) {
      const std::string address = "198.51.100." + std::to_string(i);
      EXPECT_TRUE(sign_in_->RequestPasswordReset(email, {.address = address}).ok());
    }
    EXPECT_EQ(ReasonOf(sign_in_->RequestPasswordReset(email, {.address = "198.51.100.9"})),
              "THROTTLED")
        << email;
  }
  for (int i = 0; i < 10; ++i) {
    const std::string email = "p" + std::to_string(i) + "@x.org";
    EXPECT_TRUE(sign_in_->RequestPasswordReset(email, {.address = "192.0.2.1"}).ok());
  }
  EXPECT_EQ(ReasonOf(sign_in_->RequestPasswordReset("q@x.org", {.address = "192.0.2.1"})),
            "THROTTLED");
}

// A person who signs in with a provider cannot bypass it through their mailbox.
TEST_P(SignInLinkTest, APersonOfTheProviderGetsNoPassword) {
  const OidcPerson anna = {.issuer = "https://id",
                           .subject = "s1",
                           .email = "anna@allowed.example",
                           .email_verified = true,
                           .name = "Anna",
                           .signed_in_us = std::nullopt};
  ASSERT_TRUE(sign_in_->ByOidc(anna, false, {}).ok());
  ASSERT_TRUE(sign_in_->RequestPasswordReset("anna@allowed.example", {}).ok());
  const auto texts = Deliver("anna@allowed.example");
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_THAT(texts[0], HasSubstr("Sign in with SSO"));
  EXPECT_EQ(TokenIn(texts[0]), "");
}

// An operator resets a lost second step, and the person is notified.
TEST_P(SignInLinkTest, AnOperatorResetsALostSecondStep) {
  const Person anna = Make("anna@x.org", kLinkPassword);
  EXPECT_EQ(ReasonOf(store_->ResetTotp(kOperator, anna.user_id)), "TOTP_OFF");
  const std::string cookie = Cookie("anna@x.org", kLinkPassword);
  ASSERT_TRUE(sign_in_->StartTotp(cookie).ok());
  std::string secret;
  ASSERT_TRUE(store_->database()
                  .Read([&](PeopleTx& tx) -> AdminResult<void> {
                    auto person = FindPerson(tx, anna.user_id);
                    secret = *Unseal(std::string(32, 's'), "totp " + anna.user_id,
                                     (*person)->totp_pending);
                    return {};
                  })
                  .ok());
  auto codes = sign_in_->ConfirmTotp(cookie, TotpCode(secret, clock_.WallUs() / kTotpStepUs), {});
  ASSERT_TRUE(codes.ok());
  auto waiting = sign_in_->ByPassword("anna@x.org", kLinkPassword, {.address = "192.0.2.1"});
  ASSERT_TRUE(waiting.ok());
  Deliver("anna@x.org");
  auto reset = store_->ResetTotp(kOperator, anna.user_id);
  ASSERT_TRUE(reset.ok()) << reset.error().message;
  EXPECT_TRUE(reset->person.totp_sealed.empty());
  EXPECT_FALSE(Lives(cookie)) << "sessions end";
  EXPECT_EQ(ReasonOf(sign_in_->SecondStep(waiting->challenge, "", codes->front(), {})),
            "SIGN_IN_FAILED")
      << "recovery codes are gone";
  EXPECT_NE(Cookie("anna@x.org", kLinkPassword), "") << "the password is enough now";
  EXPECT_THAT(Actions(), Contains("user.reset_totp"));
  const auto told = Deliver("anna@x.org");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], HasSubstr("An operator turned off two-factor authentication"));
  EXPECT_EQ(ReasonOf(store_->ResetTotp(kOperator, "nobody")), "NOT_FOUND");
}

// Links and pending sign-ins from before a change of the password stop working.
TEST_P(SignInLinkTest, LinksAndWaitingSignInsEndWithAChangeOfThePassword) {
  const Person anna = Make("anna@x.org", kLinkPassword);
  const auto by_link = [&](const std::string& token) {
    return ReasonOf(sign_in_->ByLink(token, "", {.address = "192.0.2.9"}));
  };
  // The person changes the password.
  std::string mailed = ResetToken("anna@x.org");
  std::string link = store_->CreateLink(kOperator, anna.user_id, "link-1")->token;
  const std::string cookie = Cookie("anna@x.org", kLinkPassword);
  ASSERT_TRUE(sign_in_->SetPassword(cookie, kLinkPassword, kOther, {}).ok());
  EXPECT_EQ(ReasonOf(sign_in_->ResetPassword(mailed, kLinkPassword, {})), "LINK_INVALID");
  EXPECT_EQ(by_link(link), "LINK_INVALID");
  // The password changes through an operator's link.
  clock_.Advance(3600 * kSecondUs);
  mailed = ResetToken("anna@x.org");
  link = store_->CreateLink(kOperator, anna.user_id, "link-2")->token;
  ASSERT_TRUE(sign_in_->ByLink(link, kLinkPassword, {}).ok());
  EXPECT_EQ(ReasonOf(sign_in_->ResetPassword(mailed, kOther, {})), "LINK_INVALID");
  // The password changes through the mailed link.
  clock_.Advance(3600 * kSecondUs);
  mailed = ResetToken("anna@x.org");
  link = store_->CreateLink(kOperator, anna.user_id, "link-3")->token;
  ASSERT_TRUE(sign_in_->ResetPassword(mailed, kOther, {}).ok());
  EXPECT_EQ(by_link(link), "LINK_INVALID");
  // Disabling and enabling an account invalidates old links, too.
  clock_.Advance(3600 * kSecondUs);
  mailed = ResetToken("anna@x.org");
  link = store_->CreateLink(kOperator, anna.user_id, "link-4")->token;
  for (const PersonState state : {PersonState::kDisabled, PersonState::kActive}) {
    ASSERT_TRUE(store_->ChangePerson(kOperator, anna.user_id, {.state = state}).ok());
  }
  EXPECT_EQ(ReasonOf(sign_in_->ResetPassword(mailed, kLinkPassword, {})), "LINK_INVALID");
  EXPECT_EQ(by_link(link), "LINK_INVALID");
  EXPECT_NE(Cookie("anna@x.org", kOther), "");
}

TEST_P(SignInLinkTest, LinksAndWaitingSignInsEndWithTheSecondStep) {
  const Person anna = Make("anna@x.org", kLinkPassword);
  const auto switch_on = [&](const std::string& cookie) {
    EXPECT_TRUE(sign_in_->StartTotp(cookie).ok());
    std::string secret;
    EXPECT_TRUE(store_->database()
                    .Read([&](PeopleTx& tx) -> AdminResult<void> {
                      auto person = FindPerson(tx, anna.user_id);
                      secret = *Unseal(std::string(32, 's'), "totp " + anna.user_id,
                                       (*person)->totp_pending);
                      return {};
                    })
                    .ok());
    auto codes = sign_in_->ConfirmTotp(cookie, TotpCode(secret, clock_.WallUs() / kTotpStepUs), {});
    EXPECT_TRUE(codes.ok());
    return *codes;
  };
  const std::string cookie = Cookie("anna@x.org", kLinkPassword);
  auto codes = switch_on(cookie);
  // A new password ends a sign-in that waits for a code.
  auto waiting = sign_in_->ByPassword("anna@x.org", kLinkPassword, {.address = "192.0.2.1"});
  ASSERT_TRUE(waiting.ok());
  auto changed = sign_in_->SetPassword(cookie, kLinkPassword, kOther, {});
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(ReasonOf(sign_in_->SecondStep(waiting->challenge, "", codes.front(), {})),
            "SIGN_IN_FAILED");
  // The person switches the second step off: mailed links and links of operators stop working.
  std::string mailed = ResetToken("anna@x.org");
  std::string link = store_->CreateLink(kOperator, anna.user_id, "link-5")->token;
  ASSERT_TRUE(sign_in_->DisableTotp(changed->cookie, {}).ok());
  EXPECT_EQ(ReasonOf(sign_in_->ResetPassword(mailed, kLinkPassword, {})), "LINK_INVALID");
  EXPECT_EQ(ReasonOf(sign_in_->ByLink(link, "", {})), "LINK_INVALID");
  // An operator switches the second step off.
  switch_on(changed->cookie);
  clock_.Advance(3600 * kSecondUs);
  mailed = ResetToken("anna@x.org");
  link = store_->CreateLink(kOperator, anna.user_id, "link-6")->token;
  ASSERT_TRUE(store_->ResetTotp(kOperator, anna.user_id).ok());
  EXPECT_EQ(ReasonOf(sign_in_->ResetPassword(mailed, kLinkPassword, {})), "LINK_INVALID");
  EXPECT_EQ(ReasonOf(sign_in_->ByLink(link, "", {})), "LINK_INVALID");
}

class WithoutMailTest : public PeopleTest {};
INSTANTIATE_TEST_SUITE_P(Databases, WithoutMailTest,
                         ::testing::Values(Kind::kSqlite, Kind::kPostgres), [](const auto& info) {
                           return info.param == Kind::kSqlite ? "sqlite" : "postgres";
                         });

TEST_P(WithoutMailTest, AForgottenPasswordIsAMatterForAnOperator) {
  Make("anna@x.org", kLinkPassword);
  for (const char* email : {"anna@x.org", "nobody@x.org"}) {
    auto asked = sign_in_->RequestPasswordReset(email, {});
    EXPECT_EQ(ReasonOf(asked), "MAIL_OFF");
    EXPECT_THAT(asked.error().message, HasSubstr("ask an operator"));
  }
}

}  // namespace
}  // namespace tollgate::people
