#include "services/people/storage/try_limits.h"

#include <algorithm>

#include "common/base/address_subject.h"
#include "common/base/crypto.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "services/people/rules/people_rules.h"

namespace tollgate::people {
namespace {

struct Kind {
  std::string_view prefix;
  TryLimit limit;
};
constexpr std::string_view kAccount = "account:", kReset = "reset:", kRecipient = "recipient:",
                           kCode = "code:", kAddress = "address:", kResetAddress = "reset-address:",
                           kOidcAddress = "oidc-address:", kNoted = "noted:";
constexpr Kind kKinds[] = {
    {kAccount, {.interval_us = 60 * kSecondUs, .burst = 10}},
    {kCode, {.interval_us = 60 * kSecondUs, .burst = 10}},
    {kReset, {.interval_us = 1200 * kSecondUs, .burst = 3}},
    {kRecipient, {.interval_us = 3600 * kSecondUs, .burst = 5}},
    {kAddress, {.interval_us = 10 * kSecondUs, .burst = 30}},
    {kResetAddress, {.interval_us = 60 * kSecondUs, .burst = 10}},
    {kNoted, {.interval_us = 600 * kSecondUs, .burst = 1}},
    {kOidcAddress, {.interval_us = 10 * kSecondUs, .burst = 60}},
};

const TryLimit& LimitOf(std::string_view subject) {
  const auto* found = std::ranges::find_if(
      kKinds, [&](const Kind& kind) { return subject.starts_with(kind.prefix); });
  return found == std::end(kKinds) ? kKinds[0].limit : found->limit;
}

std::string Hashed(std::string_view prefix, std::string_view text) {
  return std::string(prefix) + HexEncode(Sha256(text)).substr(0, 32);
}
std::string Network(std::string_view prefix, std::string_view address) {
  return std::string(prefix) + AddressSubject::FromText(address).ToText();
}

}  // namespace

std::string AccountSubject(std::string_view email) { return Hashed(kAccount, email); }
std::string ResetSubject(std::string_view email) { return Hashed(kReset, email); }
std::string RecipientSubject(std::string_view email) { return Hashed(kRecipient, email); }
std::string CodeSubject(std::string_view user_id) {
  return std::string(kCode) + std::string(user_id);
}
std::string SignInAddressSubject(std::string_view address) { return Network(kAddress, address); }
std::string ResetAddressSubject(std::string_view address) {
  return Network(kResetAddress, address);
}
std::string OidcAddressSubject(std::string_view address) { return Network(kOidcAddress, address); }

std::string NotedSubject(std::string_view subject) {
  return std::string(kNoted) + std::string(subject);
}

AdminResult<void> TakeTries(PeopleTx& tx, const std::vector<std::string>& subjects) {
  std::vector<int64_t> full(subjects.size(), 0);
  int64_t wait_us = 0;
  for (size_t i = 0; i < subjects.size(); ++i) {
    TRY(tx.Query("SELECT full_at_us FROM sign_in_tries WHERE subject = $1", {subjects[i]},
                 [&](const sql::Row& row) { full[i] = row.Int(0); }));
    wait_us = std::max(wait_us, WaitForTry(LimitOf(subjects[i]), full[i], tx.now_us()));
  }
  if (wait_us > 0) {
    return Fail{admin::Failure{.code = grpc::StatusCode::RESOURCE_EXHAUSTED,
                               .reason = "THROTTLED",
                               .message = "too many tries; wait and try again",
                               .retry_after_ms = (wait_us + 999) / 1000}};
  }
  for (size_t i = 0; i < subjects.size(); ++i) {
    TRY(tx.Execute(
        "INSERT INTO sign_in_tries (subject, full_at_us) VALUES ($1, $2) ON CONFLICT (subject) "
        "DO UPDATE SET full_at_us = excluded.full_at_us",
        {subjects[i], AfterTry(LimitOf(subjects[i]), full[i], tx.now_us())}));
  }
  TRY(tx.Execute("DELETE FROM sign_in_tries WHERE full_at_us < $1", {tx.now_us()}));
  return {};
}

AdminResult<std::string> ExhaustedOf(PeopleTx& tx, const std::vector<std::string>& subjects) {
  for (const std::string& subject : subjects) {
    int64_t full = 0;
    TRY(tx.Query("SELECT full_at_us FROM sign_in_tries WHERE subject = $1", {subject},
                 [&](const sql::Row& row) { full = row.Int(0); }));
    if (WaitForTry(LimitOf(subject), full, tx.now_us()) > 0) return subject;
  }
  return std::string();
}

AdminResult<void> ForgetTries(PeopleTx& tx, const std::string& subject) {
  TRY(tx.Execute("DELETE FROM sign_in_tries WHERE subject = $1", {subject}));
  return {};
}

}  // namespace tollgate::people
