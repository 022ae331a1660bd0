// SignIn with an OpenID Connect provider.
#include <algorithm>

#include "common/base/id.h"
#include "common/base/try.h"
#include "services/people/sign_in/sign_in_events.h"
#include "services/people/storage/sign_in_rows.h"
#include "services/people/storage/try_limits.h"

namespace tollgate::people {

AdminResult<void> SignIn::TakeOidcTry(const Browser& browser) {
  return TakeTries({OidcAddressSubject(browser.address)}, browser);
}

bool SignIn::DomainAllowed(std::string_view email) const {
  const std::string_view domain = email.substr(email.find('@') + 1);
  return std::ranges::any_of(allowed_domains_,
                             [&](const std::string& allowed) { return allowed == domain; });
}

AdminResult<NewSession> SignIn::ByOidc(const OidcPerson& claims, bool step_up,
                                       const Browser& browser) {
  NewSession session;
  auto done = store_.database().Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto user_id, PersonOfOidc(tx, claims.issuer, claims.subject));
    std::optional<Person> person;
    if (!user_id.empty()) {
      TRY(auto found, FindPerson(tx, user_id));
      person = std::move(found);
    } else {
      // First sign-in of this subject: only an address that the provider has verified counts.
      auto email = NormalEmail(claims.email, "email");
      if (!email || !claims.email_verified) return SignInFailed();
      TRY(auto found, FindPersonByEmail(tx, *email));
      person = std::move(found);
      // Anyone may have created a password account for an address that is not theirs. Linking it
      // would hand that account to the real holder of the address, with the attacker's password
      // still valid.
      if (person && !person->email_verified && !person->password_hash.empty()) {
        return admin::Precondition(
            "USER_NOT_LINKED",
            "there is an account with a password for this address: sign in with the password");
      }
      if (!person) {
        TRY(auto invited, IsInvited(tx, *email));
        if (!invited && !DomainAllowed(*email)) return SignInFailed();
        person = Person();
        person->user_id = Id::New().ToHex();
        person->email = *email;
        person->email_verified = true;
        if (CheckDisplayName(claims.name, "name").ok()) person->display_name = claims.name;
        person->created_us = tx.now_us();
        TRY(InsertPerson(tx, *person));
        const std::string name = "user:" + person->user_id;
        TRY(tx.Audit(SignInEvent(name, "user.create", name, "by " + claims.issuer, browser)));
      }
      TRY(LinkOidc(tx, claims.issuer, claims.subject, person->user_id));
      if (!person->email_verified) {
        person->email_verified = true;
        TRY(UpdatePerson(tx, *person));
      }
    }
    if (!person || !person->active()) return SignInFailed();
    if (step_up) {
      TRY(auto holder, HolderOf(tx, browser.cookie));
      if (holder.person.user_id != person->user_id) return SignInFailed();
    }
    // The provider's second step counts from the time that it reports. Without one, treat the
    // sign-in as old.
    const int64_t signed_in_us = std::min(claims.signed_in_us.value_or(0), tx.now_us());
    TRY(auto opened, Open(tx, *person, browser, claims.issuer, signed_in_us));
    session = std::move(opened);
    return {};
  });
  if (!done) return Fail{done.error()};
  return session;
}

}  // namespace tollgate::people
