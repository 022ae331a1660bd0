// SignIn by links: one-time links, invitations, forgotten passwords.
#include "common/base/id.h"
#include "common/base/try.h"
#include "services/people/sign_in/sign_in_events.h"
#include "services/people/storage/sign_in_rows.h"
#include "services/people/storage/try_limits.h"

namespace tollgate::people {
namespace {

Fail<admin::Failure> LinkInvalid() {
  return Fail{admin::Failure{.code = grpc::StatusCode::UNAUTHENTICATED,
                             .reason = "LINK_INVALID",
                             .message = "the link was used before or has expired; ask for a new "
                                        "one"}};
}

}  // namespace

AdminResult<std::string> SignIn::HashOfNew(const std::string& password, const std::string& field) {
  TRY(CheckPassword(password, "", field));
  std::string hash = hasher_.Hash(password);
  if (hash.empty()) return Fail{admin::FromError(Unavailable("no memory").error)};
  return hash;
}

AdminResult<void> SignIn::StorePassword(PeopleTx& tx, Person& person, const std::string& hash,
                                        const char* how, const Browser& browser) {
  person.password_hash = hash;
  TRY(UpdatePerson(tx, person));
  TRY(EndPending(tx, person.user_id));
  TRY(DeleteSessions(tx, person.user_id));
  TRY(store_.outbox().Tell(tx, person, SecurityChange::kPassword, browser.address));
  const std::string name = "user:" + person.user_id;
  return tx.Audit(SignInEvent(name, "user.set_password", name, how, browser));
}

Fail<admin::Failure> SignIn::RefusedLink(const admin::Failure& failure, const char* what,
                                         const Browser& browser) {
  if (failure.code != grpc::StatusCode::UNAUTHENTICATED) return Fail{failure};
  auto audited = Refused("", what, browser);
  return Fail{audited.ok() ? failure : audited.error()};
}

AdminResult<SignedIn> SignIn::ByLink(const std::string& token, const std::string& new_password,
                                     const Browser& browser) {
  TRY(TakeTries({AddressSubjectOf(browser)}, browser));
  std::string password_hash;
  if (!new_password.empty()) {
    TRY(auto made, HashOfNew(new_password, "new_password"));
    password_hash = std::move(made);
  }
  SignedIn result;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    result = {};
    TRY(auto user_id, TakeSignInLink(tx, token));
    TRY(auto person, FindPerson(tx, user_id));
    if (!person || !person->active()) return LinkInvalid();
    if (!password_hash.empty()) {
      TRY(StorePassword(tx, *person, password_hash, "by link", browser));
    }
    TRY(auto opened, OpenOrChallenge(tx, *person, browser, "link"));
    result = std::move(opened);
    return {};
  });
  if (!done) return RefusedLink(done.error(), "link", browser);
  return result;
}

AdminResult<NewSession> SignIn::ByInvitation(const std::string& token,
                                             const std::string& display_name,
                                             const std::string& password, const Browser& browser) {
  TRY(TakeTries({AddressSubjectOf(browser)}, browser));
  TRY(CheckDisplayName(display_name, "display_name"));
  TRY(auto password_hash, HashOfNew(password, "password"));
  NewSession session;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto invitation, OpenInvitation(tx, token));
    TRY(auto same, FindPersonByEmail(tx, invitation.email));
    if (same) {
      return admin::Precondition("USER_EXISTS",
                                 "there is an account for the invited address: sign in with it, "
                                 "then accept the invitation");
    }
    Person person;
    person.user_id = Id::New().ToHex();
    person.email = invitation.email;
    person.display_name = display_name;
    person.password_hash = password_hash;
    person.created_us = tx.now_us();
    TRY(InsertPerson(tx, person));
    const std::string name = "user:" + person.user_id;
    TRY(tx.Audit(SignInEvent(name, "user.create", name, "by invitation", browser)));
    TRY(UseInvitation(tx, {.name = name, .address = browser.address}, person, invitation));
    TRY(auto opened, Open(tx, person, browser, "invitation"));
    session = std::move(opened);
    return {};
  });
  if (!done) return Fail{done.error()};
  return session;
}

AdminResult<void> SignIn::RequestPasswordReset(const std::string& text, const Browser& browser) {
  if (!store_.outbox().on()) {
    return admin::Precondition("MAIL_OFF",
                               "this Tollgate sends no mail: ask an operator for a sign-in link");
  }
  const auto normal = NormalEmail(text, "email");
  const std::string email = normal.ok() ? *normal : "?" + text.substr(0, 254);
  // One transaction that does the same for every address. The mailer checks later whether the
  // address has an account.
  return store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(people::TakeTries(tx, {ResetSubject(email), ResetAddressSubject(browser.address)}));
    TRY(store_.outbox().PutResetRequest(tx, email, browser.address));
    return {};
  });
}

AdminResult<SignedIn> SignIn::ResetPassword(const std::string& token,
                                            const std::string& new_password,
                                            const Browser& browser) {
  TRY(TakeTries({AddressSubjectOf(browser)}, browser));
  TRY(auto hash, HashOfNew(new_password, "new_password"));
  SignedIn result;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    result = {};
    TRY(auto user_id, TakePasswordReset(tx, token));
    TRY(auto person, FindPerson(tx, user_id));
    if (!person || !person->active()) return LinkInvalid();
    TRY(StorePassword(tx, *person, hash, "by mail", browser));
    // Access to the mailbox is one factor: a person with a second step still has to pass it.
    TRY(auto opened, OpenOrChallenge(tx, *person, browser, "password reset"));
    result = std::move(opened);
    return {};
  });
  if (!done) return RefusedLink(done.error(), "password reset", browser);
  return result;
}

}  // namespace tollgate::people
