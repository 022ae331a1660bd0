// What a sign-in reads and writes, within a transaction: challenges of the second step, recovery
// codes, one-time links, links to accounts of a provider, and when something was last used.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "services/people/storage/people_store.h"

namespace tollgate::people {

// Deletes the sessions of everybody that have ended.
AdminResult<void> DeleteEndedSessions(PeopleTx& tx, const SessionTimes& times);
AdminResult<void> DeleteSessionOf(PeopleTx& tx, std::string_view cookie);
AdminResult<void> DeleteSession(PeopleTx& tx, const Session& session);
AdminResult<void> MarkUsed(PeopleTx& tx, const Session& session);
AdminResult<void> MarkUsed(PeopleTx& tx, const AccessToken& token);

// A sign-in that waits for the second step. secret: what the browser has of it.
inline constexpr int64_t kChallengeUs = int64_t{300} * 1'000'000;
inline constexpr int kChallengeTries = 5;
AdminResult<void> AddChallenge(PeopleTx& tx, std::string_view secret, std::string_view user_id);
// Returns whose challenge it is; "" if it is unknown, has expired, or has no try left.
AdminResult<std::string> HolderOfChallenge(PeopleTx& tx, std::string_view secret);
// Returns false if HolderOfChallenge would return "".
AdminResult<bool> TakeChallengeTry(PeopleTx& tx, std::string_view secret);
AdminResult<void> DeleteChallenge(PeopleTx& tx, std::string_view secret);

// Uses a recovery code up. Returns false if the person has no such code.
AdminResult<bool> TakeRecoveryCode(PeopleTx& tx, std::string_view user_id, std::string_view hash);
AdminResult<void> ReplaceRecoveryCodes(PeopleTx& tx, std::string_view user_id,
                                       const std::vector<std::string>& hashes);

// Uses a sign-in link up and returns its person; "" if it is invalid or has expired.
AdminResult<std::string> TakeSignInLink(PeopleTx& tx, std::string_view token);

// The person with this account at an OpenID Connect provider, or "".
AdminResult<std::string> PersonOfOidc(PeopleTx& tx, std::string_view issuer,
                                      std::string_view subject);
AdminResult<void> LinkOidc(PeopleTx& tx, std::string_view issuer, std::string_view subject,
                           std::string_view user_id);
// Whether any workspace has invited this address.
AdminResult<bool> IsInvited(PeopleTx& tx, std::string_view email);

}  // namespace tollgate::people
