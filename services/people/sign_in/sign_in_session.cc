// SignIn for people with a session.
#include "common/admin/access.h"
#include "common/base/crypto.h"
#include "common/base/seal.h"
#include "common/base/try.h"
#include "services/people/domain/totp.h"
#include "services/people/sign_in/sign_in_events.h"
#include "services/people/storage/sign_in_rows.h"
#include "services/people/storage/try_limits.h"

namespace tollgate::people {
namespace {

// Accuracy of "last used": it is written at most this often.
constexpr int64_t kUsedStepUs = 60'000'000;

Fail<admin::Failure> SessionEnded() {
  return Fail{admin::Failure{.code = grpc::StatusCode::UNAUTHENTICATED,
                             .reason = "SESSION_ENDED",
                             .message = "the session has ended: sign in again"}};
}
Fail<admin::Failure> Wrong(const char* what) {
  return Fail{admin::Failure{
      .code = grpc::StatusCode::UNAUTHENTICATED, .reason = "SIGN_IN_FAILED", .message = what}};
}

AuditRecord Event(const std::string& user_id, std::string action, const Browser& browser) {
  AuditRecord record;
  record.actor = "user:" + user_id;
  record.action = std::move(action);
  record.subject = "user:" + user_id;
  record.address = browser.address;
  return record;
}

}  // namespace

std::string AddressSubjectOf(const Browser& browser) {
  return SignInAddressSubject(browser.address);
}

std::string SignIn::RecoveryHash(const std::string& code) const {
  return HmacSha256(seal_key_, "recovery code " + NormalRecoveryCode(code));
}

AdminResult<SignIn::Holder> SignIn::HolderOf(PeopleTx& tx, const std::string& cookie) {
  TRY(auto session, FindSession(tx, cookie, store_.times()));
  if (!session) return SessionEnded();
  TRY(auto person, FindPerson(tx, session->user_id));
  if (!person || !person->active()) return SessionEnded();
  return Holder{*std::move(person), *std::move(session)};
}

AdminResult<void> SignIn::SignOut(const std::string& cookie, const Browser& browser) {
  return store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    auto holder = HolderOf(tx, cookie);
    if (!holder) return tx.error() ? AdminResult<void>(Fail{holder.error()}) : AdminResult<void>();
    TRY(DeleteSession(tx, holder->session));
    return tx.Audit(Event(holder->person.user_id, "sign_out", browser));
  });
}

AdminResult<NewSession> SignIn::Reauthenticate(const std::string& cookie,
                                               const std::string& password, const std::string& code,
                                               const Browser& browser) {
  Holder holder;
  auto read = store_.database().Read([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, HolderOf(tx, cookie));
    holder = std::move(found);
    return {};
  });
  if (!read) return Fail{read.error()};
  const std::string subject = CodeSubject(holder.person.user_id);
  TRY(TakeTries({subject, AddressSubjectOf(browser)}, browser));
  const bool matches = hasher_.Matches(holder.person.password_hash, password);
  std::optional<NewSession> session;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    session.reset();
    TRY(auto now, HolderOf(tx, cookie));
    Person& person = now.person;
    bool right = matches && person.password_hash == holder.person.password_hash;
    if (right && !person.totp_sealed.empty()) {
      TRY(auto taken, TakeCode(tx, person, code, ""));
      right = taken;
    }
    if (!right) return tx.Audit(Event(person.user_id, "sign_in.refuse", browser));
    TRY(ForgetTries(tx, subject));
    Browser same = browser;
    same.cookie = cookie;
    TRY(auto opened, Open(tx, person, same, "step-up"));
    session = std::move(opened);
    return {};
  });
  if (!done) return Fail{done.error()};
  if (!session) return Wrong("the password or the code is wrong");
  return *std::move(session);
}

AdminResult<NewSession> SignIn::SetPassword(const std::string& cookie, const std::string& current,
                                            const std::string& wanted, const Browser& browser) {
  Holder holder;
  auto read = store_.database().Read([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, HolderOf(tx, cookie));
    holder = std::move(found);
    return {};
  });
  if (!read) return Fail{read.error()};
  const Person& before = holder.person;
  TRY(CheckPassword(wanted, before.email, "new_password"));
  if (before.password_hash.empty()) {
    if (!admin::IsFresh(holder.session.signed_in_us, store_.database().NowUs())) {
      return admin::PermissionDenied(
          "STEP_UP_REQUIRED",
          "setting a first password requires a sign-in within the last five minutes");
    }
  } else {
    const std::string subject = CodeSubject(before.user_id);
    TRY(TakeTries({subject}, browser));
    if (!hasher_.Matches(before.password_hash, current)) {
      TRY(Refused(before.user_id, "current password", browser));
      return Wrong("the current password is wrong");
    }
  }
  const std::string hash = hasher_.Hash(wanted);
  if (hash.empty()) return Fail{admin::FromError(Unavailable("no memory").error)};
  NewSession session;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto now, HolderOf(tx, cookie));
    Person& person = now.person;
    if (person.password_hash != before.password_hash) return SessionEnded();
    person.password_hash = hash;
    TRY(UpdatePerson(tx, person));
    TRY(EndPending(tx, person.user_id));
    TRY(DeleteSessions(tx, person.user_id));
    TRY(ForgetTries(tx, CodeSubject(person.user_id)));
    TRY(store_.outbox().Tell(tx, person, SecurityChange::kPassword, browser.address));
    TRY(tx.Audit(Event(person.user_id, "user.set_password", browser)));
    // Keeps the old sign-in time: a change of the password does not include the second step.
    TRY(auto opened, Open(tx, person, browser, "new password", now.session.signed_in_us));
    session = std::move(opened);
    return {};
  });
  if (!done) return Fail{done.error()};
  return session;
}

AdminResult<SignIn::TotpSecret> SignIn::StartTotp(const std::string& cookie) {
  TotpSecret result;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto holder, HolderOf(tx, cookie));
    Person& person = holder.person;
    if (!admin::IsFresh(holder.session.signed_in_us, tx.now_us())) {
      return admin::PermissionDenied("STEP_UP_REQUIRED",
                                     "this requires a sign-in within the last five minutes");
    }
    if (!person.totp_sealed.empty()) {
      return admin::Precondition("TOTP_ENABLED", "the second step is on; switch it off first");
    }
    const std::string secret = RandomBytes(kTotpSecretBytes);
    person.totp_pending = Seal(seal_key_, "totp " + person.user_id, secret);
    result = {Base32(secret), TotpUri("Tollgate", person.email, secret)};
    return UpdatePerson(tx, person);
  });
  if (!done) return Fail{done.error()};
  return result;
}

AdminResult<std::vector<std::string>> SignIn::ConfirmTotp(const std::string& cookie,
                                                          const std::string& code,
                                                          const Browser& browser) {
  const std::vector<std::string> codes = NewRecoveryCodes();
  std::string user_id;
  auto read = store_.database().Read([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto holder, HolderOf(tx, cookie));
    user_id = holder.person.user_id;
    return {};
  });
  if (!read) return Fail{read.error()};
  TRY(TakeTries({CodeSubject(user_id)}, browser));
  bool wrong = false;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    wrong = false;
    TRY(auto holder, HolderOf(tx, cookie));
    Person& person = holder.person;
    const auto secret = Unseal(seal_key_, "totp " + person.user_id, person.totp_pending);
    if (!secret) {
      return admin::Precondition("TOTP_NOT_STARTED", "start the second step before confirming it");
    }
    const auto step = MatchTotp(*secret, code, tx.now_us(), 0);
    wrong = !step;
    if (wrong) {
      return tx.Audit(SignInEvent("anonymous", "sign_in.refuse", "user:" + user_id,
                                  "confirmation of the second step", browser));
    }
    TRY(ForgetTries(tx, CodeSubject(user_id)));
    person.totp_sealed = person.totp_pending;
    person.totp_pending.clear();
    person.totp_step = *step;
    TRY(UpdatePerson(tx, person));
    std::vector<std::string> hashes;
    for (const std::string& one : codes) hashes.push_back(RecoveryHash(one));
    TRY(ReplaceRecoveryCodes(tx, person.user_id, hashes));
    TRY(DeleteSessions(tx, person.user_id, holder.session.id));
    TRY(store_.outbox().Tell(tx, person, SecurityChange::kTotpOn, browser.address));
    return tx.Audit(Event(person.user_id, "user.enable_totp", browser));
  });
  if (!done) return Fail{done.error()};
  if (wrong) return admin::InvalidField("code", "the code is not the one of the app now");
  return codes;
}

AdminResult<void> SignIn::DisableTotp(const std::string& cookie, const Browser& browser) {
  return store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto holder, HolderOf(tx, cookie));
    Person& person = holder.person;
    if (!admin::IsFresh(holder.session.signed_in_us, tx.now_us())) {
      return admin::PermissionDenied("STEP_UP_REQUIRED",
                                     "this requires a sign-in within the last five minutes");
    }
    if (person.totp_sealed.empty()) return {};
    TRY(RemoveTotp(tx, person));
    TRY(store_.outbox().Tell(tx, person, SecurityChange::kTotpOff, browser.address));
    return tx.Audit(Event(person.user_id, "user.disable_totp", browser));
  });
}

AdminResult<std::optional<common::v1::Identity>> SignIn::ResolveCookie(const std::string& cookie,
                                                                       const Browser& browser) {
  std::optional<common::v1::Identity> identity;
  std::optional<Session> session;
  auto done = store_.database().Read([&](PeopleTx& tx) -> AdminResult<void> {
    identity.reset();
    session.reset();
    auto holder = HolderOf(tx, cookie);
    if (!holder) return tx.error() ? AdminResult<void>(Fail{holder.error()}) : AdminResult<void>();
    TRY(auto memberships, MembershipsOf(tx, holder->person.user_id));
    identity = IdentityOf(holder->person, memberships);
    identity->set_signed_in_us(holder->session.signed_in_us);
    identity->set_session_id(holder->session.id);
    identity->set_address(browser.address);
    session = holder->session;
    return {};
  });
  if (!done) return Fail{done.error()};
  if (session && session->used_us + kUsedStepUs <= store_.database().NowUs()) {
    auto touched = store_.database().Touch([&](PeopleTx& tx) { return MarkUsed(tx, *session); });
    if (!touched) return Fail{touched.error()};
  }
  return identity;
}

AdminResult<std::optional<common::v1::Identity>> SignIn::ResolveToken(const std::string& token,
                                                                      const Browser& browser) {
  std::optional<common::v1::Identity> identity;
  std::optional<AccessToken> found;
  if (!token.starts_with(kTokenPrefix)) return identity;
  auto done = store_.database().Read([&](PeopleTx& tx) -> AdminResult<void> {
    identity.reset();
    TRY(auto read, FindToken(tx, token));
    found = std::move(read);
    if (!found) return {};
    TRY(auto person, FindPerson(tx, found->user_id));
    if (!person || !person->active()) return {};
    TRY(auto memberships, MembershipsOf(tx, found->user_id));
    identity = IdentityOf(*person, memberships);
    identity->set_actor("token:" + found->id);
    identity->set_by_token(true);
    identity->set_address(browser.address);
    for (const std::string& scope : found->scopes) identity->add_scopes(scope);
    return {};
  });
  if (!done) return Fail{done.error()};
  if (identity && found->used_us + kUsedStepUs <= store_.database().NowUs()) {
    auto touched = store_.database().Touch([&](PeopleTx& tx) { return MarkUsed(tx, *found); });
    if (!touched) return Fail{touched.error()};
  }
  return identity;
}

}  // namespace tollgate::people
