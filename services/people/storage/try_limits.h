// Limits on how often something may be attempted, counted in the database for all replicas
// together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "services/people/storage/people_tx.h"

namespace tollgate::people {

// Subjects of the limits. An e-mail address counts whether or not it has an account. It is stored
// as a hash, because people may type anything into the field, even a password.
std::string AccountSubject(std::string_view email);    // passwords
std::string ResetSubject(std::string_view email);      // forgotten passwords
std::string RecipientSubject(std::string_view email);  // invitations by mail
std::string CodeSubject(std::string_view user_id);     // codes of the second step
// Limits by client address. An IPv6 network counts as one address.
std::string SignInAddressSubject(std::string_view address);  // sign-ins
std::string ResetAddressSubject(std::string_view address);   // forgotten passwords
std::string OidcAddressSubject(std::string_view address);    // sign-ins with a provider
// Limits audit events about refused attempts of this subject to one per ten minutes.
std::string NotedSubject(std::string_view subject);

// Takes an attempt from every subject. If one has none left, takes nothing and fails with
// THROTTLED.
AdminResult<void> TakeTries(PeopleTx& tx, const std::vector<std::string>& subjects);
// Returns the first subject without an attempt left, or "".
AdminResult<std::string> ExhaustedOf(PeopleTx& tx, const std::vector<std::string>& subjects);
AdminResult<void> ForgetTries(PeopleTx& tx, const std::string& subject);

}  // namespace tollgate::people
