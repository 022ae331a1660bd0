// How often something may be tried, counted in the database, so for all replicas together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "services/auth/storage/people_tx.h"

namespace tollgate::auth {

// What is counted. An e-mail address counts whether it has an account, and is stored as a hash:
// what people type there may be anything, a password among it.
std::string AccountSubject(std::string_view email);    // passwords
std::string ResetSubject(std::string_view email);      // forgotten passwords
std::string RecipientSubject(std::string_view email);  // invitations by mail
std::string CodeSubject(std::string_view user_id);     // codes of the second step
// By client address; an IPv6 network is one address.
std::string SignInAddressSubject(std::string_view address);  // sign-ins
std::string ResetAddressSubject(std::string_view address);   // forgotten passwords
std::string OidcAddressSubject(std::string_view address);    // sign-ins with a provider
// That tries of this subject were refused: one audit event in ten minutes.
std::string NotedSubject(std::string_view subject);

// Takes a try of each subject; or of none, and fails with THROTTLED.
AdminResult<void> TakeTries(PeopleTx& tx, const std::vector<std::string>& subjects);
// The first of them without a try left; "" for none.
AdminResult<std::string> ExhaustedOf(PeopleTx& tx, const std::vector<std::string>& subjects);
AdminResult<void> ForgetTries(PeopleTx& tx, const std::string& subject);

}  // namespace tollgate::auth
