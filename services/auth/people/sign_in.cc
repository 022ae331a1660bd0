#include "services/auth/people/sign_in.h"

#include <algorithm>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/base/seal.h"
#include "common/base/text.h"
#include "services/auth/domain/totp.h"

namespace tollgate::auth {
namespace {

constexpr int64_t kSecondUs = 1'000'000;
constexpr int64_t kChallengeUs = 300 * kSecondUs;
constexpr int kChallengeTries = 5;
constexpr size_t kMaxUserAgent = 200;

// By account (whether it exists or not) and by client address. Only what fails counts in the end.
constexpr TryLimit kAccountTries = {.interval_us = 60 * kSecondUs, .burst = 10};
constexpr TryLimit kAddressTries = {.interval_us = 10 * kSecondUs, .burst = 30};

const TryLimit& LimitOf(const std::string& subject) {
  return subject.starts_with("address:") ? kAddressTries : kAccountTries;
}
std::string AccountSubject(std::string_view email) {
  // A hash: what people type there may be anything, a password among it.
  return "account:" + HexEncode(Sha256(email)).substr(0, 32);
}
std::string CodeSubject(const std::string& user_id) { return "code:" + user_id; }

Fail<admin::Failure> SignInFailed() {
  return Fail{admin::Failure{.code = grpc::StatusCode::UNAUTHENTICATED,
                             .reason = "SIGN_IN_FAILED",
                             .message = "the sign-in failed: check what you entered"}};
}
Fail<admin::Failure> LinkInvalid() {
  return Fail{admin::Failure{.code = grpc::StatusCode::UNAUTHENTICATED,
                             .reason = "LINK_INVALID",
                             .message = "the link was used before or has expired; ask for a new "
                                        "one"}};
}

AuditRecord Event(std::string actor, std::string action, std::string subject, std::string detail,
                  const Browser& browser) {
  AuditRecord record;
  record.actor = std::move(actor);
  record.action = std::move(action);
  record.subject = std::move(subject);
  record.detail = std::move(detail);
  record.address = browser.address;
  return record;
}

}  // namespace

SignIn::SignIn(PeopleStore& store, std::string seal_key, std::vector<std::string> allowed_domains)
    : store_(store), seal_key_(std::move(seal_key)), allowed_domains_(std::move(allowed_domains)) {}

AdminResult<void> SignIn::TakeTries(const std::vector<std::string>& subjects) {
  return store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    std::vector<int64_t> full(subjects.size(), 0);
    int64_t wait_us = 0;
    for (size_t i = 0; i < subjects.size(); ++i) {
      auto read = tx.Query("SELECT full_at_us FROM sign_in_tries WHERE subject = $1", {subjects[i]},
                           [&](const sql::Row& row) { full[i] = row.Int(0); });
      if (!read) return read;
      wait_us = std::max(wait_us, WaitForTry(LimitOf(subjects[i]), full[i], tx.now_us()));
    }
    if (wait_us > 0) {
      return Fail{admin::Failure{.code = grpc::StatusCode::RESOURCE_EXHAUSTED,
                                 .reason = "THROTTLED",
                                 .message = "too many sign-ins failed; wait and try again",
                                 .retry_after_ms = (wait_us + 999) / 1000}};
    }
    for (size_t i = 0; i < subjects.size(); ++i) {
      auto put = tx.Execute(
          "INSERT INTO sign_in_tries (subject, full_at_us) VALUES ($1, $2) ON CONFLICT (subject) "
          "DO UPDATE SET full_at_us = excluded.full_at_us",
          {subjects[i], AfterTry(LimitOf(subjects[i]), full[i], tx.now_us())});
      if (!put) return Fail{put.error()};
    }
    auto old = tx.Execute("DELETE FROM sign_in_tries WHERE full_at_us < $1", {tx.now_us()});
    if (!old) return Fail{old.error()};
    return {};
  });
}

AdminResult<void> SignIn::ForgetTries(PeopleTx& tx, const std::string& subject) {
  auto gone = tx.Execute("DELETE FROM sign_in_tries WHERE subject = $1", {subject});
  if (!gone) return Fail{gone.error()};
  return {};
}

AdminResult<void> SignIn::Refused(const std::string& user_id, const Browser& browser) {
  return store_.database().Write([&](PeopleTx& tx) {
    return tx.Audit(Event("anonymous", "sign_in.refuse", user_id.empty() ? "" : "user:" + user_id,
                          "", browser));
  });
}

AdminResult<NewSession> SignIn::Open(PeopleTx& tx, const Person& person, const Browser& browser,
                                     const std::string& how, std::optional<int64_t> signed_in_us) {
  auto expired = tx.Execute("DELETE FROM session WHERE expires_at_us < $1 OR used_at_us < $2",
                            {tx.now_us(), tx.now_us() - store_.times().idle_us});
  if (!expired) return Fail{expired.error()};
  // A new id at every sign-in: who knew the old one gains nothing.
  if (!browser.cookie.empty()) {
    const std::string hash = HashSecret(browser.cookie);
    auto old = tx.Execute("DELETE FROM session WHERE token_hash = $1", {sql::Param::Blob(hash)});
    if (!old) return Fail{old.error()};
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
  if (auto inserted = InsertSession(tx, session, made.cookie); !inserted) {
    return Fail{inserted.error()};
  }
  if (auto forgot = ForgetTries(tx, AccountSubject(person.email)); !forgot) {
    return Fail{forgot.error()};
  }
  auto audited =
      tx.Audit(Event("user:" + person.user_id, "sign_in", "session:" + session.id, how, browser));
  if (!audited) return Fail{audited.error()};
  return made;
}

AdminResult<SignedIn> SignIn::OpenOrChallenge(PeopleTx& tx, const Person& person,
                                              const Browser& browser, const std::string& how) {
  SignedIn result;
  if (person.totp_sealed.empty()) {
    auto session = Open(tx, person, browser, how);
    if (!session) return Fail{session.error()};
    result.session = *std::move(session);
    return result;
  }
  result.challenge = NewSecret();
  const std::string hash = HashSecret(result.challenge);
  auto old = tx.Execute("DELETE FROM sign_in_challenge WHERE expires_at_us < $1", {tx.now_us()});
  if (!old) return Fail{old.error()};
  auto added = tx.Execute(
      "INSERT INTO sign_in_challenge (token_hash, user_id, tries, expires_at_us) VALUES ($1, $2, "
      "0, $3)",
      {sql::Param::Blob(hash), person.user_id, tx.now_us() + kChallengeUs});
  if (!added) return Fail{added.error()};
  return result;
}

AdminResult<SignedIn> SignIn::ByPassword(const std::string& text, const std::string& password,
                                         const Browser& browser) {
  // An address that cannot be one is treated as one that has no account.
  const auto normal = NormalEmail(text, "email");
  const std::string email = normal.ok() ? *normal : "?" + text.substr(0, 254);
  auto taken = TakeTries({AccountSubject(email), AddressSubjectOf(browser)});
  if (!taken) return Fail{taken.error()};
  Person person;
  auto read = store_.database().Read([&](PeopleTx& tx) -> AdminResult<void> {
    auto found = FindPersonByEmail(tx, email);
    if (!found) return Fail{found.error()};
    person = found->value_or(Person());
    return {};
  });
  if (!read) return Fail{read.error()};
  std::optional<SignedIn> result;
  if (hasher_.Matches(person.password_hash, password) && person.active()) {
    auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
      result.reset();
      // The comparison took a while: the password or the state may have changed.
      auto now = FindPerson(tx, person.user_id);
      if (!now) return Fail{now.error()};
      if (!*now || !(*now)->active() || (*now)->password_hash != person.password_hash) return {};
      auto opened = OpenOrChallenge(tx, **now, browser, "password");
      if (!opened) return Fail{opened.error()};
      result = *std::move(opened);
      return {};
    });
    if (!done) return Fail{done.error()};
  }
  if (!result) {
    if (auto audited = Refused(person.user_id, browser); !audited) return Fail{audited.error()};
    return SignInFailed();
  }
  return *std::move(result);
}

AdminResult<bool> SignIn::TakeCode(PeopleTx& tx, Person& person, const std::string& code,
                                   const std::string& recovery_code) {
  if (!recovery_code.empty()) {
    const std::string hash = RecoveryHash(recovery_code);
    auto used = tx.Execute("DELETE FROM recovery_code WHERE user_id = $1 AND code_hash = $2",
                           {person.user_id, sql::Param::Blob(hash)});
    if (!used) return Fail{used.error()};
    return *used > 0;
  }
  const auto secret = Unseal(seal_key_, "totp " + person.user_id, person.totp_sealed);
  if (!secret) return false;
  const auto step = MatchTotp(*secret, code, tx.now_us(), person.totp_step);
  if (!step) return false;
  person.totp_step = *step;
  if (auto updated = UpdatePerson(tx, person); !updated) return Fail{updated.error()};
  return true;
}

AdminResult<NewSession> SignIn::SecondStep(const std::string& challenge, const std::string& code,
                                           const std::string& recovery_code,
                                           const Browser& browser) {
  if (auto taken = TakeTries({AddressSubjectOf(browser)}); !taken) return Fail{taken.error()};
  std::optional<NewSession> session;
  const std::string hash = HashSecret(challenge);
  std::string user_id;
  auto find = store_.database().Read([&](PeopleTx& tx) {
    user_id.clear();
    return tx.Query(
        "SELECT user_id FROM sign_in_challenge WHERE token_hash = $1 AND expires_at_us > $2 AND "
        "tries < $3",
        {sql::Param::Blob(hash), tx.now_us(), kChallengeTries},
        [&](const sql::Row& row) { user_id = row.Text(0); });
  });
  if (!find) return Fail{find.error()};
  if (user_id.empty()) return SignInFailed();
  // Across challenges: each costs a right password, which an attacker may have.
  if (auto taken = TakeTries({CodeSubject(user_id)}); !taken) return Fail{taken.error()};
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    session.reset();
    auto counted = tx.Execute(
        "UPDATE sign_in_challenge SET tries = tries + 1 WHERE token_hash = $1 AND expires_at_us > "
        "$2 AND tries < $3",
        {sql::Param::Blob(hash), tx.now_us(), kChallengeTries});
    if (!counted) return Fail{counted.error()};
    auto person = FindPerson(tx, user_id);
    if (!person) return Fail{person.error()};
    if (*counted == 0 || !*person || !(*person)->active()) return {};
    auto right = TakeCode(tx, **person, code, recovery_code);
    if (!right) return Fail{right.error()};
    if (!*right) {
      return tx.Audit(
          Event("anonymous", "sign_in.refuse", "user:" + user_id, "second step", browser));
    }
    auto used =
        tx.Execute("DELETE FROM sign_in_challenge WHERE token_hash = $1", {sql::Param::Blob(hash)});
    if (!used) return Fail{used.error()};
    if (auto forgot = ForgetTries(tx, CodeSubject(user_id)); !forgot) return forgot;
    auto opened = Open(tx, **person, browser,
                       recovery_code.empty() ? "password and code" : "password and recovery code");
    if (!opened) return Fail{opened.error()};
    session = *std::move(opened);
    return {};
  });
  if (!done) return Fail{done.error()};
  if (!session) return SignInFailed();
  return *std::move(session);
}

AdminResult<SignedIn> SignIn::ByLink(const std::string& token, const std::string& new_password,
                                     const Browser& browser) {
  if (auto taken = TakeTries({AddressSubjectOf(browser)}); !taken) return Fail{taken.error()};
  std::string password_hash;
  if (!new_password.empty()) {
    if (auto good = CheckPassword(new_password, "", "new_password"); !good) {
      return Fail{good.error()};
    }
    password_hash = hasher_.Hash(new_password);
    if (password_hash.empty()) return Fail{admin::FromError(Unavailable("no memory").error)};
  }
  const std::string hash = HashSecret(token);
  SignedIn result;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    result = {};
    std::string user_id;
    auto read = tx.Query(
        "SELECT user_id FROM sign_in_link WHERE token_hash = $1 AND expires_at_us > $2",
        {sql::Param::Blob(hash), tx.now_us()}, [&](const sql::Row& row) { user_id = row.Text(0); });
    if (!read) return read;
    auto used =
        tx.Execute("DELETE FROM sign_in_link WHERE token_hash = $1", {sql::Param::Blob(hash)});
    if (!used) return Fail{used.error()};
    auto person = FindPerson(tx, user_id);
    if (!person) return Fail{person.error()};
    if (!*person || !(*person)->active()) return LinkInvalid();
    if (!password_hash.empty()) {
      (*person)->password_hash = password_hash;
      if (auto updated = UpdatePerson(tx, **person); !updated) return updated;
      if (auto ended = DeleteSessions(tx, user_id); !ended) return Fail{ended.error()};
      auto audited = tx.Audit(
          Event("user:" + user_id, "user.set_password", "user:" + user_id, "by link", browser));
      if (!audited) return audited;
    }
    auto opened = OpenOrChallenge(tx, **person, browser, "link");
    if (!opened) return Fail{opened.error()};
    result = *std::move(opened);
    return {};
  });
  if (!done) return Fail{done.error()};
  return result;
}

AdminResult<NewSession> SignIn::ByInvitation(const std::string& token,
                                             const std::string& display_name,
                                             const std::string& password, const Browser& browser) {
  if (auto taken = TakeTries({AddressSubjectOf(browser)}); !taken) return Fail{taken.error()};
  if (auto name = CheckDisplayName(display_name, "display_name"); !name) return Fail{name.error()};
  if (auto good = CheckPassword(password, "", "password"); !good) return Fail{good.error()};
  const std::string password_hash = hasher_.Hash(password);
  if (password_hash.empty()) return Fail{admin::FromError(Unavailable("no memory").error)};
  NewSession session;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    auto invitation = OpenInvitation(tx, token);
    if (!invitation) return Fail{invitation.error()};
    auto same = FindPersonByEmail(tx, invitation->email);
    if (!same) return Fail{same.error()};
    if (*same) {
      return admin::Precondition("USER_EXISTS",
                                 "there is an account for the invited address: sign in with it, "
                                 "then accept the invitation");
    }
    Person person;
    person.user_id = Id::New().ToHex();
    person.email = invitation->email;
    person.display_name = display_name;
    person.password_hash = password_hash;
    person.created_us = tx.now_us();
    if (auto inserted = InsertPerson(tx, person); !inserted) return inserted;
    const std::string name = "user:" + person.user_id;
    if (auto made = tx.Audit(Event(name, "user.create", name, "by invitation", browser)); !made) {
      return made;
    }
    if (auto used =
            UseInvitation(tx, {.name = name, .address = browser.address}, person, *invitation);
        !used) {
      return used;
    }
    auto opened = Open(tx, person, browser, "invitation");
    if (!opened) return Fail{opened.error()};
    session = *std::move(opened);
    return {};
  });
  if (!done) return Fail{done.error()};
  return session;
}

bool SignIn::DomainAllowed(std::string_view email) const {
  const std::string_view domain = email.substr(email.find('@') + 1);
  return std::ranges::any_of(allowed_domains_,
                             [&](const std::string& allowed) { return allowed == domain; });
}

AdminResult<NewSession> SignIn::ByOidc(const OidcPerson& claims, const Browser& browser) {
  NewSession session;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    std::string user_id;
    auto linked = tx.Query("SELECT user_id FROM oidc_link WHERE issuer = $1 AND subject = $2",
                           {claims.issuer, claims.subject},
                           [&](const sql::Row& row) { user_id = row.Text(0); });
    if (!linked) return linked;
    std::optional<Person> person;
    if (!user_id.empty()) {
      auto found = FindPerson(tx, user_id);
      if (!found) return Fail{found.error()};
      person = *std::move(found);
    } else {
      // The first time. Only an address that the provider has verified counts.
      auto email = NormalEmail(claims.email, "email");
      if (!email || !claims.email_verified) return SignInFailed();
      auto found = FindPersonByEmail(tx, *email);
      if (!found) return Fail{found.error()};
      person = *std::move(found);
      // An attacker may have made an account for an address that is not theirs, with a password:
      // it must not become the account of whoever really has the address.
      if (person && !person->email_verified && !person->password_hash.empty()) {
        return admin::Precondition(
            "USER_NOT_LINKED",
            "there is an account with a password for this address: sign in with the password");
      }
      if (!person) {
        int64_t invitations = 0;
        auto invited =
            tx.Query("SELECT count(*) FROM invitation WHERE email = $1 AND expires_at_us > $2",
                     {*email, tx.now_us()}, [&](const sql::Row& row) { invitations = row.Int(0); });
        if (!invited) return invited;
        if (invitations == 0 && !DomainAllowed(*email)) return SignInFailed();
        person = Person();
        person->user_id = Id::New().ToHex();
        person->email = *email;
        person->email_verified = true;
        if (CheckDisplayName(claims.name, "name").ok()) person->display_name = claims.name;
        person->created_us = tx.now_us();
        if (auto inserted = InsertPerson(tx, *person); !inserted) return inserted;
        const std::string name = "user:" + person->user_id;
        auto made = tx.Audit(Event(name, "user.create", name, "by " + claims.issuer, browser));
        if (!made) return made;
      }
      auto added =
          tx.Execute("INSERT INTO oidc_link (issuer, subject, user_id) VALUES ($1, $2, $3)",
                     {claims.issuer, claims.subject, person->user_id});
      if (!added) return Fail{added.error()};
      if (!person->email_verified) {
        person->email_verified = true;
        if (auto updated = UpdatePerson(tx, *person); !updated) return updated;
      }
    }
    if (!person || !person->active()) return SignInFailed();
    // The provider has asked for what it wants of a second step.
    auto opened = Open(tx, *person, browser, claims.issuer);
    if (!opened) return Fail{opened.error()};
    session = *std::move(opened);
    return {};
  });
  if (!done) return Fail{done.error()};
  return session;
}

}  // namespace tollgate::auth
