// Signs people in, and resolves sessions and access tokens. Blocks on the database and on password
// hashes, so only dedicated threads may call it (rpc/people.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "services/people/domain/password.h"
#include "services/people/storage/people_store.h"

namespace tollgate::people {

// The browser that sends the request.
struct Browser {
  std::string address;
  std::string user_agent;
  std::string cookie;  // the browser's session cookie; a new session replaces the old one
};

// Rate-limit subject of the browser's address. An IPv6 network counts as one address.
std::string AddressSubjectOf(const Browser& browser);

struct NewSession {
  std::string cookie;
  int64_t expires_us = 0;
};
// Result of a sign-in: either a session, or the challenge of a second step.
struct SignedIn {
  NewSession session;
  std::string challenge;
};

// A person as an OpenID Connect provider describes them.
struct OidcPerson {
  std::string issuer;
  std::string subject;
  std::string email;
  bool email_verified = false;
  std::string name;
  // When the person last authenticated at the provider; unset: the provider does not say.
  std::optional<int64_t> signed_in_us;
};

class SignIn {
 public:
  // seal_key: 32 bytes, for TOTP secrets and recovery codes. allowed_domains: domains whose
  // addresses may sign in by OpenID Connect without an invitation.
  SignIn(PeopleStore& store, std::string seal_key, std::vector<std::string> allowed_domains);

  AdminResult<SignedIn> ByPassword(const std::string& email, const std::string& password,
                                   const Browser& browser);
  AdminResult<NewSession> SecondStep(const std::string& challenge, const std::string& code,
                                     const std::string& recovery_code, const Browser& browser);
  AdminResult<SignedIn> ByLink(const std::string& token, const std::string& new_password,
                               const Browser& browser);
  AdminResult<NewSession> ByInvitation(const std::string& token, const std::string& display_name,
                                       const std::string& password, const Browser& browser);
  // Opens a session that is as fresh as the sign-in at the provider. step_up: the person must be
  // the one of the browser's session.
  AdminResult<NewSession> ByOidc(const OidcPerson& person, bool step_up, const Browser& browser);
  // Called before each call of the provider.
  AdminResult<void> TakeOidcTry(const Browser& browser);
  // Mails a link if the address has an account. Does the same work and answers the same if it has
  // none. Fails with MAIL_OFF without mail.
  AdminResult<void> RequestPasswordReset(const std::string& email, const Browser& browser);
  AdminResult<SignedIn> ResetPassword(const std::string& token, const std::string& new_password,
                                      const Browser& browser);

  AdminResult<void> SignOut(const std::string& cookie, const Browser& browser);
  AdminResult<NewSession> Reauthenticate(const std::string& cookie, const std::string& password,
                                         const std::string& code, const Browser& browser);
  AdminResult<NewSession> SetPassword(const std::string& cookie, const std::string& current,
                                      const std::string& wanted, const Browser& browser);

  struct TotpSecret {
    std::string secret;
    std::string uri;
  };
  AdminResult<TotpSecret> StartTotp(const std::string& cookie);
  // Returns the recovery codes.
  AdminResult<std::vector<std::string>> ConfirmTotp(const std::string& cookie,
                                                    const std::string& code,
                                                    const Browser& browser);
  AdminResult<void> DisableTotp(const std::string& cookie, const Browser& browser);

  // nullopt if the cookie or token is unknown, expired or revoked.
  AdminResult<std::optional<common::v1::Identity>> ResolveCookie(const std::string& cookie,
                                                                 const Browser& browser);
  AdminResult<std::optional<common::v1::Identity>> ResolveToken(const std::string& token,
                                                                const Browser& browser);

 private:
  // A person, and the session of their cookie.
  struct Holder {
    Person person;
    Session session;
  };
  AdminResult<Holder> HolderOf(PeopleTx& tx, const std::string& cookie);
  // signed_in_us: sign-in time of the session that the new one continues; unset: a fresh sign-in.
  AdminResult<NewSession> Open(PeopleTx& tx, const Person& person, const Browser& browser,
                               const std::string& how,
                               std::optional<int64_t> signed_in_us = std::nullopt);
  AdminResult<SignedIn> OpenOrChallenge(PeopleTx& tx, const Person& person, const Browser& browser,
                                        const std::string& how);
  // Takes an attempt from each subject, or fails with THROTTLED. The audit log records that at most
  // once in ten minutes for each subject.
  AdminResult<void> TakeTries(const std::vector<std::string>& subjects, const Browser& browser);
  // Hashes a password that is set by a link.
  AdminResult<std::string> HashOfNew(const std::string& password, const std::string& field);
  // Stores a password that was set by a link, ends the person's sessions and notifies the person.
  AdminResult<void> StorePassword(PeopleTx& tx, Person& person, const std::string& hash,
                                  const char* how, const Browser& browser);
  // Writes an audit event. Call it after TakeTries, which bounds the number of events.
  AdminResult<void> Refused(const std::string& user_id, const char* what, const Browser& browser);
  Fail<admin::Failure> RefusedLink(const admin::Failure& failure, const char* what,
                                   const Browser& browser);
  // Checks a code or a recovery code, and uses it up.
  AdminResult<bool> TakeCode(PeopleTx& tx, Person& person, const std::string& code,
                             const std::string& recovery_code);
  std::string RecoveryHash(const std::string& code) const;
  bool DomainAllowed(std::string_view email) const;

  PeopleStore& store_;
  const std::string seal_key_;
  const std::vector<std::string> allowed_domains_;
  const PasswordHasher hasher_;
};

}  // namespace tollgate::people
