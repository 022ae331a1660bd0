#include "services/people/sign_in/sign_in.h"

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/base/seal.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "services/people/domain/totp.h"
#include "services/people/sign_in/sign_in_events.h"
#include "services/people/storage/sign_in_rows.h"
#include "services/people/storage/try_limits.h"

namespace tollgate::people {
namespace {

constexpr size_t kMaxUserAgent = 200;

}  // namespace

SignIn::SignIn(PeopleStore& store, std::string seal_key, std::vector<std::string> allowed_domains)
    : store_(store), seal_key_(std::move(seal_key)), allowed_domains_(std::move(allowed_domains)) {}

AdminResult<void> SignIn::TakeTries(const std::vector<std::string>& subjects,
                                    const Browser& browser) {
  auto taken =
      store_.database().Write([&](PeopleTx& tx) { return people::TakeTries(tx, subjects); });
  if (taken.ok() || taken.error().reason != "THROTTLED") return taken;
  // At most one event per subject in ten minutes, so that a flood cannot fill the log.
  auto noted = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto subject, ExhaustedOf(tx, subjects));
    if (subject.empty()) return {};
    TRY(people::TakeTries(tx, {NotedSubject(subject)}));
    return tx.Audit(SignInEvent("anonymous", "sign_in.throttle", "",
                                subject.substr(0, subject.find(':')), browser));
  });
  if (!noted.ok() && noted.error().reason != "THROTTLED") return noted;
  return taken;
}

AdminResult<void> SignIn::Refused(const std::string& user_id, const char* what,
                                  const Browser& browser) {
  return store_.database().Write([&](PeopleTx& tx) {
    return tx.Audit(SignInEvent("anonymous", "sign_in.refuse",
                                user_id.empty() ? "" : "user:" + user_id, what, browser));
  });
}

AdminResult<NewSession> SignIn::Open(PeopleTx& tx, const Person& person, const Browser& browser,
                                     const std::string& how, std::optional<int64_t> signed_in_us) {
  TRY(DeleteEndedSessions(tx, store_.times()));
  // Each sign-in gets a new session id, so an attacker who knew the old one gains nothing (session
  // fixation).
  if (!browser.cookie.empty()) {
    TRY(DeleteSessionOf(tx, browser.cookie));
  }
  Session session{.id = Id::New().ToHex(),
                  .user_id = person.user_id,
                  .address = ToValidUtf8(browser.address, 64),
                  .user_agent = ToValidUtf8(browser.user_agent, kMaxUserAgent),
                  .created_us = tx.now_us(),
                  .signed_in_us = signed_in_us.value_or(tx.now_us()),
                  .used_us = tx.now_us(),
                  .expires_us = tx.now_us() + store_.times().absolute_us};
  NewSession made{.cookie = NewSecret(), .expires_us = session.expires_us};
  TRY(InsertSession(tx, session, made.cookie));
  TRY(ForgetTries(tx, AccountSubject(person.email)));
  TRY(tx.Audit(
      SignInEvent("user:" + person.user_id, "sign_in", "session:" + session.id, how, browser)));
  return made;
}

AdminResult<SignedIn> SignIn::OpenOrChallenge(PeopleTx& tx, const Person& person,
                                              const Browser& browser, const std::string& how) {
  SignedIn result;
  if (person.totp_sealed.empty()) {
    TRY(auto session, Open(tx, person, browser, how));
    result.session = std::move(session);
    return result;
  }
  result.challenge = NewSecret();
  TRY(AddChallenge(tx, result.challenge, person.user_id));
  return result;
}

AdminResult<SignedIn> SignIn::ByPassword(const std::string& text, const std::string& password,
                                         const Browser& browser) {
  // A malformed address is handled like one without an account.
  const auto normal = NormalEmail(text, "email");
  const std::string email = normal.ok() ? *normal : "?" + text.substr(0, 254);
  TRY(TakeTries({AccountSubject(email), AddressSubjectOf(browser)}, browser));
  Person person;
  auto read = store_.database().Read([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, FindPersonByEmail(tx, email));
    person = found.value_or(Person());
    return {};
  });
  if (!read) return Fail{read.error()};
  std::optional<SignedIn> result;
  if (hasher_.Matches(person.password_hash, password) && person.active()) {
    auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
      result.reset();
      // Password hashing takes a while: the password or the state may have changed.
      TRY(auto now, FindPerson(tx, person.user_id));
      if (!now || !now->active() || now->password_hash != person.password_hash) return {};
      TRY(auto opened, OpenOrChallenge(tx, *now, browser, "password"));
      result = std::move(opened);
      return {};
    });
    if (!done) return Fail{done.error()};
  }
  if (!result) {
    TRY(Refused(person.user_id, "password", browser));
    return SignInFailed();
  }
  return *std::move(result);
}

AdminResult<bool> SignIn::TakeCode(PeopleTx& tx, Person& person, const std::string& code,
                                   const std::string& recovery_code) {
  if (!recovery_code.empty()) {
    return TakeRecoveryCode(tx, person.user_id, RecoveryHash(recovery_code));
  }
  const auto secret = Unseal(seal_key_, "totp " + person.user_id, person.totp_sealed);
  if (!secret) return false;
  const auto step = MatchTotp(*secret, code, tx.now_us(), person.totp_step);
  if (!step) return false;
  person.totp_step = *step;
  TRY(UpdatePerson(tx, person));
  return true;
}

AdminResult<NewSession> SignIn::SecondStep(const std::string& challenge, const std::string& code,
                                           const std::string& recovery_code,
                                           const Browser& browser) {
  TRY(TakeTries({AddressSubjectOf(browser)}, browser));
  std::optional<NewSession> session;
  std::string user_id;
  auto find = store_.database().Read([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(user_id, HolderOfChallenge(tx, challenge));
    return {};
  });
  if (!find) return Fail{find.error()};
  if (user_id.empty()) {
    TRY(Refused("", "second step of an unknown or expired sign-in", browser));
    return SignInFailed();
  }
  // Limits codes across challenges: an attacker who has the password can open any number of them.
  TRY(TakeTries({CodeSubject(user_id)}, browser));
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    session.reset();
    TRY(auto counted, TakeChallengeTry(tx, challenge));
    TRY(auto person, FindPerson(tx, user_id));
    if (!counted || !person || !person->active()) return {};
    TRY(auto right, TakeCode(tx, *person, code, recovery_code));
    if (!right) {
      return tx.Audit(
          SignInEvent("anonymous", "sign_in.refuse", "user:" + user_id, "second step", browser));
    }
    TRY(DeleteChallenge(tx, challenge));
    TRY(ForgetTries(tx, CodeSubject(user_id)));
    TRY(auto opened,
        Open(tx, *person, browser,
             recovery_code.empty() ? "password and code" : "password and recovery code"));
    session = std::move(opened);
    return {};
  });
  if (!done) return Fail{done.error()};
  if (!session) return SignInFailed();
  return *std::move(session);
}

}  // namespace tollgate::people
