#include "services/people/sign_in/sign_in.h"

#include <gmock/gmock.h>

#include <ctime>
#include <thread>

#include "common/admin/access.h"
#include "common/base/time_units.h"
#include "services/people/domain/totp.h"
#include "services/people/testing/people_world.h"

namespace tollgate::people {
namespace {

using ::testing::Contains;

constexpr char kSignInPassword[] = "correct horse battery";

class SignInTest : public PeopleTest {
 protected:
  // Switches the second step on and returns the secret as raw bytes.
  std::string EnableTotp(const std::string& cookie, std::vector<std::string>* codes = nullptr) {
    auto started = sign_in_->StartTotp(cookie);
    EXPECT_TRUE(started.ok()) << started.error().message;
    const std::string secret = FromBase32(started->secret);
    auto confirmed =
        sign_in_->ConfirmTotp(cookie, TotpCode(secret, clock_.WallUs() / kTotpStepUs), {});
    EXPECT_TRUE(confirmed.ok()) << confirmed.error().message;
    if (codes != nullptr) *codes = *confirmed;
    return secret;
  }
  static std::string FromBase32(const std::string& text) {
    std::string out;
    uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
      bits = bits << 5 | static_cast<uint32_t>(c >= 'A' ? c - 'A' : c - '2' + 26);
      count += 5;
      if (count >= 8) out += static_cast<char>(bits >> (count -= 8));
    }
    return out;
  }
  std::string CodeNow(const std::string& secret) {
    return TotpCode(secret, clock_.WallUs() / kTotpStepUs);
  }
};
INSTANTIATE_TEST_SUITE_P(Databases, SignInTest, ::testing::Values(Kind::kSqlite, Kind::kPostgres),
                         [](const auto& info) {
                           return info.param == Kind::kSqlite ? "sqlite" : "postgres";
                         });

TEST_P(SignInTest, ARightPasswordOpensASessionThatNamesItsPerson) {
  const Person anna = Make("anna@x.org", kSignInPassword, Role::ROLE_BILLING);
  auto signed_in = sign_in_->ByPassword("ANNA@x.org", kSignInPassword,
                                        {.address = "192.0.2.1", .user_agent = "test"});
  ASSERT_TRUE(signed_in.ok()) << signed_in.error().message;
  EXPECT_EQ(signed_in->session.cookie.size(), 43U);
  auto identity = sign_in_->ResolveCookie(signed_in->session.cookie, {.address = "192.0.2.1"});
  ASSERT_TRUE(identity.ok() && identity->has_value());
  EXPECT_EQ((*identity)->actor(), "user:" + anna.user_id);
  EXPECT_EQ((*identity)->signed_in_us(), clock_.WallUs());
  EXPECT_EQ((*identity)->address(), "192.0.2.1");
  EXPECT_EQ((*identity)->memberships(0).role(), Role::ROLE_BILLING);
  EXPECT_FALSE(Lives("another"));
  EXPECT_FALSE(Lives(""));
  EXPECT_THAT(Actions(), Contains("sign_in"));
}

// Every failure looks the same, whether the account exists, has a password, or is disabled.
TEST_P(SignInTest, AFailureDoesNotTellWhoExists) {
  Make("anna@x.org", kSignInPassword);
  Make("nopassword@x.org");
  const Person disabled = Make("disabled@x.org", kSignInPassword);
  ASSERT_TRUE(
      store_->ChangePerson(kOperator, disabled.user_id, {.state = PersonState::kDisabled}).ok());
  std::vector<std::string> messages;
  for (const char* email :
       {"anna@x.org", "nobody@x.org", "nopassword@x.org", "disabled@x.org", "not an address", ""}) {
    const std::string given =
        std::string(email) == "disabled@x.org" ? kSignInPassword : "wrong password";
    auto result = sign_in_->ByPassword(email, given, {.address = email});
    ASSERT_FALSE(result.ok()) << email;
    EXPECT_EQ(result.error().reason, "SIGN_IN_FAILED") << email;
    messages.push_back(result.error().message);
  }
  for (const std::string& message : messages) EXPECT_EQ(message, messages.front());
  EXPECT_THAT(Actions(), Contains("sign_in.refuse").Times(6));
}

// An address without an account costs the same work: one password hash.
TEST_P(SignInTest, AFailureTakesAsLongForAnAddressWithoutAnAccount) {
  Make("anna@x.org", kSignInPassword);
  // Processor time of this thread, unaffected by other work on the machine.
  const auto spent_us = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1'000'000 + time.tv_nsec / 1000;
  };
  const auto measure = [&](const std::string& email) {
    int64_t best = INT64_MAX;
    for (int i = 0; i < 5; ++i) {
      const int64_t begin = spent_us();
      EXPECT_FALSE(sign_in_->ByPassword(email, "wrong password", {}).ok());
      best = std::min<int64_t>(best, spent_us() - begin);
    }
    return best;
  };
  const int64_t known = measure("anna@x.org"), unknown = measure("nobody@x.org");
  EXPECT_GT(unknown, known / 2) << known << " µs and " << unknown << " µs";
  EXPECT_GT(known, unknown / 2) << known << " µs and " << unknown << " µs";
}

TEST_P(SignInTest, TriesAreLimitedByAccountWhetherItExists) {
  Make("anna@x.org", kSignInPassword);
  for (const char* email : {"anna@x.org", "nobody@x.org"}) {
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(ReasonOf(sign_in_->ByPassword(email, "wrong password",
                                              {.address = "192.0.2." + std::to_string(i)})),
                "SIGN_IN_FAILED");
    }
    auto limited = sign_in_->ByPassword(email, kSignInPassword, {.address = "192.0.2.99"});
    EXPECT_EQ(ReasonOf(limited), "THROTTLED") << "even with the right password";
    EXPECT_EQ(limited.error().retry_after_ms, 60'000);
  }
  clock_.Advance(60 * kSecondUs);
  EXPECT_NE(Cookie("anna@x.org", kSignInPassword), "");
  // A successful sign-in restores all attempts.
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(ReasonOf(sign_in_->ByPassword("anna@x.org", "wrong password",
                                            {.address = "198.51.100." + std::to_string(i)})),
              "SIGN_IN_FAILED");
  }
}

TEST_P(SignInTest, TriesAreLimitedByAddress) {
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(ReasonOf(sign_in_->ByLink("no link", "", {.address = "192.0.2.1"})), "LINK_INVALID");
  }
  EXPECT_EQ(ReasonOf(sign_in_->ByLink("no link", "", {.address = "192.0.2.1"})), "THROTTLED");
  EXPECT_EQ(ReasonOf(sign_in_->ByPassword("a@b.c", "x", {.address = "192.0.2.1"})), "THROTTLED");
  EXPECT_EQ(ReasonOf(sign_in_->ByLink("no link", "", {.address = "192.0.2.2"})), "LINK_INVALID");
}

// Refused sign-ins are audited (docs/design/people.md 8), but a flood writes few events.
TEST_P(SignInTest, WhatIsRefusedIsAuditedAndAFloodMakesOneEvent) {
  const Person anna = Make("anna@x.org", kSignInPassword);
  const auto newest = [&] {
    const AuditRecord event = AuditEvents().front();  // the newest
    return event.action + " " + event.subject + ": " + event.detail + " from " + event.address;
  };
  const Browser browser{.address = "192.0.2.1"};
  EXPECT_EQ(ReasonOf(sign_in_->SecondStep("no challenge", "123456", "", browser)),
            "SIGN_IN_FAILED");
  EXPECT_EQ(newest(),
            "sign_in.refuse : second step of an unknown or expired sign-in from 192.0.2.1");
  EXPECT_EQ(ReasonOf(sign_in_->ByLink("no link", "", browser)), "LINK_INVALID");
  EXPECT_EQ(newest(), "sign_in.refuse : link from 192.0.2.1");
  const std::string cookie = Cookie("anna@x.org", kSignInPassword);
  const std::string name = "user:" + anna.user_id;
  EXPECT_EQ(ReasonOf(sign_in_->SetPassword(cookie, "wrong", "a new long password", browser)),
            "SIGN_IN_FAILED");
  EXPECT_EQ(newest(), "sign_in.refuse " + name + ": current password from 192.0.2.1");
  ASSERT_TRUE(sign_in_->StartTotp(cookie).ok());
  EXPECT_FALSE(sign_in_->ConfirmTotp(cookie, "000000", browser).ok());
  EXPECT_EQ(newest(),
            "sign_in.refuse " + name + ": confirmation of the second step from 192.0.2.1");

  const auto throttled = [&] {
    return std::ranges::count(Actions(), std::string("sign_in.throttle"));
  };
  // Uses links, which cost no password hash.
  for (int i = 0; i < 100; ++i) (void)sign_in_->ByLink("no link", "", {.address = "192.0.2.7"});
  EXPECT_EQ(throttled(), 1);
  EXPECT_EQ(newest(), "sign_in.throttle : address from 192.0.2.7");
  const auto flood = [&] {
    for (int i = 0; i < 100; ++i) {
      (void)sign_in_->ByPassword("a@x.org", "x", {.address = "192.0.2.7"});
    }
  };
  const auto events = Actions().size();
  flood();
  EXPECT_EQ(Actions().size(), events) << "until ten minutes have passed";
  clock_.Advance(601 * kSecondUs);
  flood();
  EXPECT_EQ(throttled(), 2) << "the account's attempts ended first";
}

// An IPv6 client usually controls a whole network.
TEST_P(SignInTest, AnIpv6NetworkIsOneAddress) {
  for (int i = 0; i < 30; ++i) {
    const std::string address = "2001:db8:1:2::" + std::to_string(i + 1);
    EXPECT_EQ(ReasonOf(sign_in_->ByLink("no link", "", {.address = address})), "LINK_INVALID");
  }
  EXPECT_EQ(ReasonOf(sign_in_->ByLink("no link", "", {.address = "2001:db8:1:2:3::"})),
            "THROTTLED");
  EXPECT_EQ(ReasonOf(sign_in_->ByLink("no link", "", {.address = "2001:db8:1:3::1"})),
            "LINK_INVALID");
}

// The password is compared outside the transaction that opens the session.
TEST_P(SignInTest, APasswordThatChangesMeanwhileOpensNothing) {
  const Person anna = Make("anna@x.org", kSignInPassword);
  Person changed;
  ASSERT_TRUE(store_->database()
                  .Read([&](PeopleTx& tx) -> AdminResult<void> {
                    auto found = FindPerson(tx, anna.user_id);
                    if (!found) return Fail{found.error()};
                    changed = found->value();
                    return {};
                  })
                  .ok());
  changed.password_hash = PasswordHasher().Hash("another good one");
  std::thread sign_in([&] { (void)sign_in_->ByPassword("anna@x.org", kSignInPassword, {}); });
  // SignIn reads the person right after it has taken its attempts, and then compares for a long
  // time.
  const auto tries = [&] {
    int64_t count = 0;
    EXPECT_TRUE(store_->database()
                    .Read([&](PeopleTx& tx) {
                      return tx.Query(
                          "SELECT count(*) FROM sign_in_tries WHERE subject LIKE 'acc%'", {},
                          [&](const sql::Row& row) { count = row.Int(0); });
                    })
                    .ok());
    return count;
  };
  for (int i = 0; i < 100'000 && tries() == 0; ++i) std::this_thread::yield();
  EXPECT_TRUE(store_->database()
                  .Write([&](PeopleTx& tx) -> AdminResult<void> {
                    if (auto put = UpdatePerson(tx, changed); !put) return put;
                    auto ended = DeleteSessions(tx, anna.user_id);
                    if (!ended) return Fail{ended.error()};
                    return {};
                  })
                  .ok());
  sign_in.join();
  EXPECT_TRUE(store_->ListSessions(anna.user_id)->empty())
      << "a new password ends the sessions of the old one";
}

TEST_P(SignInTest, ASessionEndsWhenIdleAndInAnyCase) {
  Make("anna@x.org", kSignInPassword);
  const std::string idle = Cookie("anna@x.org", kSignInPassword);
  clock_.Advance(30 * 60 * kSecondUs - 1);
  EXPECT_TRUE(Lives(idle));
  clock_.Advance(30 * 60 * kSecondUs - 1);
  EXPECT_TRUE(Lives(idle)) << "the last use counts";
  clock_.Advance(30 * 60 * kSecondUs + 1);
  EXPECT_FALSE(Lives(idle));
  const std::string busy = Cookie("anna@x.org", kSignInPassword);
  for (int i = 0; i < 36; ++i) {
    clock_.Advance(20 * 60 * kSecondUs);
    if (i < 35) {
      EXPECT_TRUE(Lives(busy)) << i;
    }
  }
  EXPECT_FALSE(Lives(busy)) << "twelve hours";
}

TEST_P(SignInTest, EachSignInHasANewIdAndEndsTheOldOne) {
  const Person anna = Make("anna@x.org", kSignInPassword, Role::ROLE_OWNER);
  const std::string first = Cookie("anna@x.org", kSignInPassword);
  auto second = sign_in_->ByPassword("anna@x.org", kSignInPassword, {.cookie = first});
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second->session.cookie, first);
  EXPECT_FALSE(Lives(first));
  EXPECT_TRUE(Lives(second->session.cookie));
  // A session cookie that an attacker has planted is not reused.
  const std::string planted = NewSecret();
  auto third = sign_in_->ByPassword("anna@x.org", kSignInPassword, {.cookie = planted});
  ASSERT_TRUE(third.ok());
  EXPECT_NE(third->session.cookie, planted);
  EXPECT_FALSE(Lives(planted));
  ASSERT_TRUE(sign_in_->SignOut(third->session.cookie, {}).ok());
  EXPECT_FALSE(Lives(third->session.cookie));
  EXPECT_TRUE(sign_in_->SignOut(third->session.cookie, {}).ok())
      << "signing out twice is not an error";
}

TEST_P(SignInTest, AChangeOfRoleOrStateEndsTheSessions) {
  const Person anna = Make("anna@x.org", kSignInPassword, Role::ROLE_OWNER);
  const Person bert = Make("bert@x.org", kSignInPassword, Role::ROLE_VIEWER);
  std::string cookie = Cookie("bert@x.org", kSignInPassword);
  const std::string annas = Cookie("anna@x.org", kSignInPassword);
  ASSERT_TRUE(store_->SetRole(kOperator, "acme", bert.user_id, Role::ROLE_ADMIN).ok());
  EXPECT_FALSE(Lives(cookie));
  EXPECT_TRUE(Lives(annas));
  cookie = Cookie("bert@x.org", kSignInPassword);
  ASSERT_TRUE(store_->ChangePerson(kOperator, bert.user_id, {.platform_operator = true}).ok());
  EXPECT_FALSE(Lives(cookie));
  cookie = Cookie("bert@x.org", kSignInPassword);
  ASSERT_TRUE(store_->ChangePerson(kOperator, bert.user_id, {.display_name = "Bert"}).ok());
  EXPECT_TRUE(Lives(cookie)) << "a new name changes no permissions";
  ASSERT_TRUE(
      store_->ChangePerson(kOperator, bert.user_id, {.state = PersonState::kDisabled}).ok());
  EXPECT_FALSE(Lives(cookie));
  EXPECT_EQ(Cookie("bert@x.org", kSignInPassword), "");
}

TEST_P(SignInTest, SessionsAreListedAndEnded) {
  const Person anna = Make("anna@x.org", kSignInPassword);
  const Actor actor = {.name = "user:" + anna.user_id};
  clock_.Advance(1);
  const std::string first = Cookie("anna@x.org", kSignInPassword);
  clock_.Advance(1);
  const std::string second = Cookie("anna@x.org", kSignInPassword);
  auto sessions = store_->ListSessions(anna.user_id);
  ASSERT_TRUE(sessions.ok());
  // Make opened the third one, by the link that sets the password.
  ASSERT_EQ(sessions->size(), 3U);
  const std::string second_id = sessions->at(0).id;
  EXPECT_EQ(ReasonOf(store_->DeleteSession(actor, "other-user", second_id)), "NOT_FOUND");
  EXPECT_TRUE(store_->DeleteSession(actor, anna.user_id, sessions->at(1).id).ok());
  EXPECT_FALSE(Lives(first));
  EXPECT_EQ(*store_->RevokeOtherSessions(actor, anna.user_id, second_id), 1);
  EXPECT_TRUE(Lives(second));
}

TEST_P(SignInTest, OfOnePersonAHundredSessionsRemain) {
  const Person anna = Make("anna@x.org", kSignInPassword);
  const std::string first = Cookie("anna@x.org", kSignInPassword);
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(10 * kSecondUs);
    // Opens a session like a sign-in does, without the time of a password hash.
    auto opened = store_->database().Write([&](PeopleTx& tx) {
      const int64_t now_us = tx.now_us();
      return InsertSession(tx,
                           {.id = "session" + std::to_string(i),
                            .user_id = anna.user_id,
                            .created_us = now_us,
                            .signed_in_us = now_us,
                            .used_us = now_us,
                            .expires_us = now_us + 3600 * kSecondUs},
                           "cookie" + std::to_string(i));
    });
    ASSERT_TRUE(opened.ok()) << i;
  }
  EXPECT_EQ(store_->ListSessions(anna.user_id)->size(), 100U);
  EXPECT_FALSE(sign_in_->ResolveCookie(first, {})->has_value()) << "the oldest has ended";
}

TEST_P(SignInTest, WithTheSecondStepAPasswordAloneOpensNothing) {
  const Person anna = Make("anna@x.org", kSignInPassword);
  std::vector<std::string> codes;
  const std::string secret = EnableTotp(Cookie("anna@x.org", kSignInPassword), &codes);
  clock_.Advance(90 * kSecondUs);
  auto first = sign_in_->ByPassword("anna@x.org", kSignInPassword, {});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->session.cookie, "");
  ASSERT_NE(first->challenge, "");
  EXPECT_FALSE(Lives(first->challenge)) << "a challenge is not a session";
  EXPECT_EQ(ReasonOf(sign_in_->SecondStep(first->challenge, "000000", "", {})), "SIGN_IN_FAILED");
  const std::string code = CodeNow(secret);
  auto session = sign_in_->SecondStep(first->challenge, code, "", {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  EXPECT_TRUE(Lives(session->cookie));
  EXPECT_EQ(ReasonOf(sign_in_->SecondStep(first->challenge, CodeNow(secret), "", {})),
            "SIGN_IN_FAILED")
      << "a challenge works once";
  auto again = sign_in_->ByPassword("anna@x.org", kSignInPassword, {});
  EXPECT_EQ(ReasonOf(sign_in_->SecondStep(again->challenge, code, "", {})), "SIGN_IN_FAILED")
      << "a code works once";
  // A recovery code works once, in any spelling.
  EXPECT_EQ(ReasonOf(sign_in_->SecondStep(again->challenge, "", "nonsense", {})), "SIGN_IN_FAILED");
  EXPECT_TRUE(sign_in_->SecondStep(again->challenge, "", " " + codes[3], {}).ok());
  auto third = sign_in_->ByPassword("anna@x.org", kSignInPassword, {});
  EXPECT_EQ(ReasonOf(sign_in_->SecondStep(third->challenge, "", codes[3], {})), "SIGN_IN_FAILED");
  clock_.Advance(301 * kSecondUs);
  EXPECT_EQ(ReasonOf(sign_in_->SecondStep(third->challenge, CodeNow(secret), "", {})),
            "SIGN_IN_FAILED")
      << "five minutes";
}

TEST_P(SignInTest, CodesCannotBeGuessed) {
  const Person anna = Make("anna@x.org", kSignInPassword);
  const std::string secret = EnableTotp(Cookie("anna@x.org", kSignInPassword));
  clock_.Advance(90 * kSecondUs);
  int refused = 0, limited = 0;
  for (int challenge = 0; challenge < 4; ++challenge) {
    auto signed_in = sign_in_->ByPassword("anna@x.org", kSignInPassword, {.address = "a"});
    ASSERT_TRUE(signed_in.ok());
    for (int i = 0; i < 7; ++i) {
      const auto result =
          sign_in_->SecondStep(signed_in->challenge, "00000" + std::to_string(i), "",
                               {.address = std::to_string(challenge) + "." + std::to_string(i)});
      (ReasonOf(result) == "THROTTLED" ? limited : refused) += 1;
    }
    // A challenge allows five attempts.
    EXPECT_EQ(ReasonOf(sign_in_->SecondStep(signed_in->challenge, CodeNow(secret), "", {})) == "",
              false);
  }
  EXPECT_GT(limited, 0) << "a person has ten attempts in a row";
}

// The database alone does not reveal the secret.
TEST_P(SignInTest, TheSecretOfTheSecondStepIsSealed) {
  const Person anna = Make("anna@x.org", kSignInPassword);
  const std::string secret = EnableTotp(Cookie("anna@x.org", kSignInPassword));
  auto view = store_->GetPerson(anna.user_id);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->person.totp_sealed.find(secret), std::string::npos);
  EXPECT_TRUE(view->person.password_hash.starts_with("$argon2id$"));
  SignIn other_key(*store_, std::string(32, 'x'), {});
  clock_.Advance(90 * kSecondUs);
  auto challenge = other_key.ByPassword("anna@x.org", kSignInPassword, {});
  ASSERT_TRUE(challenge.ok());
  EXPECT_EQ(ReasonOf(other_key.SecondStep(challenge->challenge, CodeNow(secret), "", {})),
            "SIGN_IN_FAILED");
}

TEST_P(SignInTest, AStepUpIsAFreshProofAndANewId) {
  const Person anna = Make("anna@x.org", kSignInPassword);
  const std::string old = Cookie("anna@x.org", kSignInPassword);
  clock_.Advance(600 * kSecondUs);
  const auto fresh = [&](const std::string& cookie) {
    auto identity = sign_in_->ResolveCookie(cookie, {});
    return identity.ok() && identity->has_value() &&
           admin::IsFresh((*identity)->signed_in_us(), clock_.WallUs());
  };
  EXPECT_FALSE(fresh(old));
  EXPECT_EQ(ReasonOf(sign_in_->StartTotp(old)), "STEP_UP_REQUIRED");
  EXPECT_EQ(ReasonOf(sign_in_->Reauthenticate(old, "wrong password", "", {})), "SIGN_IN_FAILED");
  auto stepped = sign_in_->Reauthenticate(old, kSignInPassword, "", {});
  ASSERT_TRUE(stepped.ok()) << stepped.error().message;
  EXPECT_TRUE(fresh(stepped->cookie));
  EXPECT_FALSE(Lives(old));
  const std::string secret = EnableTotp(stepped->cookie);
  clock_.Advance(90 * kSecondUs);
  EXPECT_EQ(ReasonOf(sign_in_->Reauthenticate(stepped->cookie, kSignInPassword, "", {})),
            "SIGN_IN_FAILED")
      << "with a second step, both are required";
  EXPECT_TRUE(sign_in_->Reauthenticate(stepped->cookie, kSignInPassword, CodeNow(secret), {}).ok());
  EXPECT_EQ(ReasonOf(sign_in_->Reauthenticate("no session", kSignInPassword, "", {})),
            "SESSION_ENDED");
}

TEST_P(SignInTest, ANewPasswordEndsTheOtherSessions) {
  Make("anna@x.org", kSignInPassword);
  const std::string here = Cookie("anna@x.org", kSignInPassword);
  const std::string there = Cookie("anna@x.org", kSignInPassword);
  EXPECT_EQ(ReasonOf(sign_in_->SetPassword(here, "wrong password", "another good one", {})),
            "SIGN_IN_FAILED");
  EXPECT_EQ(ReasonOf(sign_in_->SetPassword(here, kSignInPassword, "short", {})), "WEAK_PASSWORD");
  auto changed = sign_in_->SetPassword(here, kSignInPassword, "another good one", {});
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  EXPECT_TRUE(Lives(changed->cookie));
  EXPECT_FALSE(Lives(here));
  EXPECT_FALSE(Lives(there));
  EXPECT_EQ(Cookie("anna@x.org", kSignInPassword), "");
  EXPECT_NE(Cookie("anna@x.org", "another good one"), "");
}

// Otherwise a stolen cookie and the password would be enough for a step-up.
TEST_P(SignInTest, ANewPasswordIsNoFreshSignIn) {
  Make("anna@x.org", kSignInPassword);
  const std::string old = Cookie("anna@x.org", kSignInPassword);
  EnableTotp(old);
  const int64_t signed_in_us = clock_.WallUs();
  clock_.Advance(600 * kSecondUs);
  auto changed = sign_in_->SetPassword(old, kSignInPassword, "another good one", {});
  ASSERT_TRUE(changed.ok()) << changed.error().message;
  auto identity = sign_in_->ResolveCookie(changed->cookie, {});
  ASSERT_TRUE(identity.ok() && identity->has_value());
  EXPECT_EQ((*identity)->signed_in_us(), signed_in_us);
  EXPECT_EQ(ReasonOf(sign_in_->DisableTotp(changed->cookie, {})), "STEP_UP_REQUIRED");
}

TEST_P(SignInTest, AnInvitationMakesAnAccountForItsAddressOnly) {
  const Person anna = Make("anna@x.org", kSignInPassword, Role::ROLE_OWNER);
  const Actor owner = {.name = "user:" + anna.user_id};
  auto made = store_->CreateInvitation(
      owner, {.workspace = "acme", .email = "new@x.org", .role = Role::ROLE_DEVELOPER}, "r1");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(ReasonOf(sign_in_->ByInvitation(made->token, "New", "short", {})), "WEAK_PASSWORD");
  auto session = sign_in_->ByInvitation(made->token, "New", kSignInPassword, {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  auto identity = sign_in_->ResolveCookie(session->cookie, {});
  ASSERT_TRUE(identity->has_value());
  EXPECT_EQ((*identity)->memberships(0).role(), Role::ROLE_DEVELOPER);
  EXPECT_EQ(ReasonOf(sign_in_->ByInvitation(made->token, "New", kSignInPassword, {})),
            "INVITATION_EXPIRED");
  // An invitation cannot set another password for an existing account.
  auto second = store_->CreateInvitation(
      owner, {.workspace = "other", .email = "anna@x.org", .role = Role::ROLE_VIEWER}, "r2");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(ReasonOf(sign_in_->ByInvitation(second->token, "X", "stolen password", {})),
            "USER_EXISTS");
  EXPECT_NE(Cookie("anna@x.org", kSignInPassword), "");
}

TEST_P(SignInTest, AProviderSignsInWhomItVouchesFor) {
  const OidcPerson allowed = {.issuer = "https://id",
                              .subject = "s1",
                              .email = "New@allowed.example",
                              .email_verified = true,
                              .name = "New"};
  auto session = sign_in_->ByOidc(allowed, false, {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  OidcPerson moved = allowed;
  moved.email = "moved@else.example";
  auto again = sign_in_->ByOidc(moved, false, {});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*sign_in_->ResolveCookie(again->cookie, {}))->user_id(),
            (*sign_in_->ResolveCookie(session->cookie, {}))->user_id())
      << "the subject counts, not the address";
  OidcPerson stranger = allowed;
  stranger.subject = "s2";
  stranger.email = "x@stranger.example";
  EXPECT_EQ(ReasonOf(sign_in_->ByOidc(stranger, false, {})), "SIGN_IN_FAILED") << "not invited";
  OidcPerson unverified = allowed;
  unverified.subject = "s3";
  unverified.email = "y@allowed.example";
  unverified.email_verified = false;
  EXPECT_EQ(ReasonOf(sign_in_->ByOidc(unverified, false, {})), "SIGN_IN_FAILED");
  // An attacker has created an account for the address, with a known password.
  Make("z@allowed.example", kSignInPassword);
  OidcPerson squatted = allowed;
  squatted.subject = "s4";
  squatted.email = "z@allowed.example";
  EXPECT_EQ(ReasonOf(sign_in_->ByOidc(squatted, false, {})), "USER_NOT_LINKED");
  const Person bert = Make("b@allowed.example");
  OidcPerson linked = allowed;
  linked.subject = "s5";
  linked.email = "b@allowed.example";
  auto bert_in = sign_in_->ByOidc(linked, false, {});
  ASSERT_TRUE(bert_in.ok()) << bert_in.error().message;
  EXPECT_EQ((*sign_in_->ResolveCookie(bert_in->cookie, {}))->user_id(), bert.user_id);
  ASSERT_TRUE(
      store_->ChangePerson(kOperator, bert.user_id, {.state = PersonState::kDisabled}).ok());
  EXPECT_EQ(ReasonOf(sign_in_->ByOidc(linked, false, {})), "SIGN_IN_FAILED");
}

// A step-up must come from the provider: a sign-in that it does not report as new is not fresh.
TEST_P(SignInTest, ASessionIsAsFreshAsTheProvidersSignIn) {
  OidcPerson anna = {.issuer = "https://id",
                     .subject = "s1",
                     .email = "anna@allowed.example",
                     .email_verified = true,
                     .name = "Anna",
                     .signed_in_us = std::nullopt};
  const auto fresh = [&](const NewSession& session) {
    auto identity = sign_in_->ResolveCookie(session.cookie, {});
    return admin::IsFresh((*identity)->signed_in_us(), clock_.WallUs());
  };
  auto unknown = sign_in_->ByOidc(anna, false, {});
  ASSERT_TRUE(unknown.ok()) << unknown.error().message;
  EXPECT_FALSE(fresh(*unknown)) << "the provider does not say when";
  anna.signed_in_us = clock_.WallUs() - 301 * kSecondUs;
  EXPECT_FALSE(fresh(*sign_in_->ByOidc(anna, false, {})));
  anna.signed_in_us = clock_.WallUs() - 10 * kSecondUs;
  EXPECT_TRUE(fresh(*sign_in_->ByOidc(anna, false, {})));
  anna.signed_in_us = clock_.WallUs() + 50 * kSecondUs;
  auto ahead = sign_in_->ByOidc(anna, false, {});
  EXPECT_EQ((*sign_in_->ResolveCookie(ahead->cookie, {}))->signed_in_us(), clock_.WallUs())
      << "the provider's clock is ahead";
}

// A step-up must be by the person of the session.
TEST_P(SignInTest, AStepUpWithTheProviderIsOfTheSamePerson) {
  OidcPerson anna = {.issuer = "https://id",
                     .subject = "s1",
                     .email = "anna@allowed.example",
                     .email_verified = true,
                     .name = "Anna",
                     .signed_in_us = clock_.WallUs()};
  auto session = sign_in_->ByOidc(anna, false, {});
  ASSERT_TRUE(session.ok());
  OidcPerson bert = anna;
  bert.subject = "s2";
  bert.email = "bert@allowed.example";
  EXPECT_EQ(ReasonOf(sign_in_->ByOidc(bert, true, {.cookie = session->cookie})), "SIGN_IN_FAILED");
  EXPECT_TRUE(Lives(session->cookie)) << "the session goes on";
  EXPECT_EQ(ReasonOf(sign_in_->ByOidc(anna, true, {})), "SESSION_ENDED") << "nobody is signed in";
  auto stepped = sign_in_->ByOidc(anna, true, {.cookie = session->cookie});
  ASSERT_TRUE(stepped.ok()) << stepped.error().message;
  EXPECT_FALSE(Lives(session->cookie));
}

TEST_P(SignInTest, SignInsWithTheProviderAreLimitedByAddress) {
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(sign_in_->TakeOidcTry({.address = "192.0.2.1"}).ok()) << i;
  }
  EXPECT_EQ(ReasonOf(sign_in_->TakeOidcTry({.address = "192.0.2.1"})), "THROTTLED");
  EXPECT_TRUE(sign_in_->TakeOidcTry({.address = "192.0.2.2"}).ok());
  clock_.Advance(10 * kSecondUs);
  EXPECT_TRUE(sign_in_->TakeOidcTry({.address = "192.0.2.1"}).ok());
}

}  // namespace
}  // namespace tollgate::people
