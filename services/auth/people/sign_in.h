// How people sign in, and who holds a session or an access token. Blocks on the database and on
// password hashes: for threads of its own (rpc/session_rpc.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "services/auth/people/password.h"
#include "services/auth/storage/people_store.h"

namespace tollgate::auth {

// The browser that asks.
struct Browser {
  std::string address;
  std::string user_agent;
  std::string cookie;  // of the session that a new one replaces
};

// What counts the tries of this browser's address: an IPv6 network is one address.
std::string AddressSubjectOf(const Browser& browser);

struct NewSession {
  std::string cookie;
  int64_t expires_us = 0;
};
// Either a session, or the challenge of a second step.
struct SignedIn {
  NewSession session;
  std::string challenge;
};

// A person whom an OpenID Connect provider vouches for.
struct OidcPerson {
  std::string issuer;
  std::string subject;
  std::string email;
  bool email_verified = false;
  std::string name;
  // When the provider last made sure who the person is; unset: it does not say.
  std::optional<int64_t> signed_in_us;
};

class SignIn {
 public:
  // seal_key: 32 bytes, for TOTP secrets and recovery codes. allowed_domains: of addresses that may
  // sign in by OpenID Connect without an invitation.
  SignIn(PeopleStore& store, std::string seal_key, std::vector<std::string> allowed_domains);

  AdminResult<SignedIn> ByPassword(const std::string& email, const std::string& password,
                                   const Browser& browser);
  AdminResult<NewSession> SecondStep(const std::string& challenge, const std::string& code,
                                     const std::string& recovery_code, const Browser& browser);
  AdminResult<SignedIn> ByLink(const std::string& token, const std::string& new_password,
                               const Browser& browser);
  AdminResult<NewSession> ByInvitation(const std::string& token, const std::string& display_name,
                                       const std::string& password, const Browser& browser);
  // A session that is as fresh as the provider's sign-in. step_up: the browser's session must be of
  // the same person.
  AdminResult<NewSession> ByOidc(const OidcPerson& person, bool step_up, const Browser& browser);
  // Before the provider is called.
  AdminResult<void> TakeOidcTry(const Browser& browser);
  // Mails a link, if the address has an account; the same work and answer for each. MAIL_OFF.
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
  // The recovery codes.
  AdminResult<std::vector<std::string>> ConfirmTotp(const std::string& cookie,
                                                    const std::string& code,
                                                    const Browser& browser);
  AdminResult<void> DisableTotp(const std::string& cookie, const Browser& browser);

  // Nothing for a cookie or a token that is not (or no longer) good.
  AdminResult<std::optional<common::v1::Identity>> ResolveCookie(const std::string& cookie,
                                                                 const Browser& browser);
  AdminResult<std::optional<common::v1::Identity>> ResolveToken(const std::string& token,
                                                                const Browser& browser);

 private:
  // A person and the session whose cookie they sent.
  struct Holder {
    Person person;
    Session session;
  };
  AdminResult<Holder> HolderOf(PeopleTx& tx, const std::string& cookie);
  // signed_in_us: of the session that this one goes on from; unset: a fresh sign-in.
  AdminResult<NewSession> Open(PeopleTx& tx, const Person& person, const Browser& browser,
                               const std::string& how,
                               std::optional<int64_t> signed_in_us = std::nullopt);
  AdminResult<SignedIn> OpenOrChallenge(PeopleTx& tx, const Person& person, const Browser& browser,
                                        const std::string& how);
  // Takes a try of each subject, or fails with THROTTLED; the audit log has that once in ten
  // minutes for each subject.
  AdminResult<void> TakeTries(const std::vector<std::string>& subjects, const Browser& browser);
  // The hash of a password that is set by a link.
  AdminResult<std::string> HashOfNew(const std::string& password, const std::string& field);
  // Stores a password that was set by a link, ends the person's sessions and tells the person.
  AdminResult<void> StorePassword(PeopleTx& tx, Person& person, const std::string& hash,
                                  const char* how, const Browser& browser);
  // After TakeTries, which bounds how many of these events there are.
  AdminResult<void> Refused(const std::string& user_id, const char* what, const Browser& browser);
  Fail<admin::Failure> RefusedLink(const admin::Failure& failure, const char* what,
                                   const Browser& browser);
  // Whether the code or the recovery code is right; it is used up.
  AdminResult<bool> TakeCode(PeopleTx& tx, Person& person, const std::string& code,
                             const std::string& recovery_code);
  std::string RecoveryHash(const std::string& code) const;
  bool DomainAllowed(std::string_view email) const;

  PeopleStore& store_;
  const std::string seal_key_;
  const std::vector<std::string> allowed_domains_;
  const PasswordHasher hasher_;
};

}  // namespace tollgate::auth
