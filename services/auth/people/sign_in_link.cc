// SignIn by links: one-time links, invitations, forgotten passwords.
#include "common/base/id.h"
#include "services/auth/people/sign_in_events.h"
#include "services/auth/people/try_limits.h"

namespace tollgate::auth {
namespace {

Fail<admin::Failure> LinkInvalid() {
  return Fail{admin::Failure{.code = grpc::StatusCode::UNAUTHENTICATED,
                             .reason = "LINK_INVALID",
                             .message = "the link was used before or has expired; ask for a new "
                                        "one"}};
}

}  // namespace

AdminResult<std::string> SignIn::HashOfNew(const std::string& password, const std::string& field) {
  if (auto good = CheckPassword(password, "", field); !good) return Fail{good.error()};
  std::string hash = hasher_.Hash(password);
  if (hash.empty()) return Fail{admin::FromError(Unavailable("no memory").error)};
  return hash;
}

AdminResult<void> SignIn::StorePassword(PeopleTx& tx, Person& person, const std::string& hash,
                                        const char* how, const Browser& browser) {
  person.password_hash = hash;
  if (auto updated = UpdatePerson(tx, person); !updated) return updated;
  if (auto ended = EndPending(tx, person.user_id); !ended) return ended;
  if (auto ended = DeleteSessions(tx, person.user_id); !ended) return Fail{ended.error()};
  auto told = store_.outbox().Tell(tx, person, SecurityChange::kPassword, browser.address);
  if (!told) return told;
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
  if (auto taken = TakeTries({AddressSubjectOf(browser)}, browser); !taken)
    return Fail{taken.error()};
  std::string password_hash;
  if (!new_password.empty()) {
    auto made = HashOfNew(new_password, "new_password");
    if (!made) return Fail{made.error()};
    password_hash = *std::move(made);
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
      auto stored = StorePassword(tx, **person, password_hash, "by link", browser);
      if (!stored) return stored;
    }
    auto opened = OpenOrChallenge(tx, **person, browser, "link");
    if (!opened) return Fail{opened.error()};
    result = *std::move(opened);
    return {};
  });
  if (!done) return RefusedLink(done.error(), "link", browser);
  return result;
}

AdminResult<NewSession> SignIn::ByInvitation(const std::string& token,
                                             const std::string& display_name,
                                             const std::string& password, const Browser& browser) {
  if (auto taken = TakeTries({AddressSubjectOf(browser)}, browser); !taken)
    return Fail{taken.error()};
  if (auto name = CheckDisplayName(display_name, "display_name"); !name) return Fail{name.error()};
  auto password_hash = HashOfNew(password, "password");
  if (!password_hash) return Fail{password_hash.error()};
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
    person.password_hash = *password_hash;
    person.created_us = tx.now_us();
    if (auto inserted = InsertPerson(tx, person); !inserted) return inserted;
    const std::string name = "user:" + person.user_id;
    if (auto made = tx.Audit(SignInEvent(name, "user.create", name, "by invitation", browser));
        !made) {
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
    auto taken = auth::TakeTries(tx, {ResetSubject(email), ResetAddressSubject(browser.address)});
    if (!taken) return taken;
    auto put = store_.outbox().PutResetRequest(tx, email, browser.address);
    if (!put) return Fail{put.error()};
    return {};
  });
}

AdminResult<SignedIn> SignIn::ResetPassword(const std::string& token,
                                            const std::string& new_password,
                                            const Browser& browser) {
  if (auto taken = TakeTries({AddressSubjectOf(browser)}, browser); !taken)
    return Fail{taken.error()};
  auto hash = HashOfNew(new_password, "new_password");
  if (!hash) return Fail{hash.error()};
  SignedIn result;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    result = {};
    auto user_id = TakePasswordReset(tx, token);
    if (!user_id) return Fail{user_id.error()};
    auto person = FindPerson(tx, *user_id);
    if (!person) return Fail{person.error()};
    if (!*person || !(*person)->active()) return LinkInvalid();
    if (auto stored = StorePassword(tx, **person, *hash, "by mail", browser); !stored) {
      return stored;
    }
    // Access to the mailbox is one factor: a person with a second step still has to pass it.
    auto opened = OpenOrChallenge(tx, **person, browser, "password reset");
    if (!opened) return Fail{opened.error()};
    result = *std::move(opened);
    return {};
  });
  if (!done) return RefusedLink(done.error(), "password reset", browser);
  return result;
}

}  // namespace tollgate::auth
