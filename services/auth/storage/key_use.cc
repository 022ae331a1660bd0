#include "services/auth/storage/key_use.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "common/base/time_units.h"
#include "common/base/try.h"

namespace tollgate::auth {

using sql::SqlResult;

namespace {

constexpr int64_t kQuarterUs = 15 * kMinuteUs;
// Refusals are kept for 26 hours: the longest day and one more.
constexpr int64_t kKeptQuarters = 26 * 4;
// Largest clock difference between gateways and auth that is accepted.
constexpr int64_t kMaxAheadUs = 5 * kMinuteUs;

std::string Hex(uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

SqlResult<void> WriteRefusals(sql::Connection& sql, const std::string& reporter,
                              const v1::KeyUse& use, int64_t now_us) {
  for (const v1::RefusalCount& refusal : use.refusals()) {
    if (refusal.count() == 0 || refusal.quarter() < 0 ||
        refusal.quarter() > (now_us + kMaxAheadUs) / kQuarterUs) {
      continue;
    }
    TRY(sql.Execute(
        "INSERT INTO key_refusal_reason (key_id, quarter, code, reason, source, amount)"
        " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (key_id, quarter, code, reason, source)"
        " DO UPDATE SET amount = excluded.amount"
        " WHERE excluded.amount > key_refusal_reason.amount",
        {use.key_id(), refusal.quarter(), refusal.code(), refusal.reason(), reporter,
         refusal.count()}));
  }
  return {};
}

}  // namespace

SqlResult<void> WriteKeyUse(sql::Connection& sql, const std::string& reporter,
                            const v1::KeyUse& use, int64_t now_us) {
  const int64_t used_us = std::min(use.last_used_us(), now_us);
  TRY(sql.Execute(
      "UPDATE virtual_key SET last_used_us = $1 WHERE key_id = $2 AND last_used_us < $1",
      {used_us, use.key_id()}));
  static constexpr char kUpsert[] =
      "INSERT INTO key_use (key_id, kind, period, source, amount) VALUES ($1, $2, $3, $4, $5) "
      "ON CONFLICT (key_id, kind, period, source) DO UPDATE SET amount = excluded.amount "
      "WHERE excluded.amount > key_use.amount";
  const auto put = [&](UseKind kind, int64_t period, int64_t period_us, const std::string& source,
                       int64_t amount) -> SqlResult<void> {
    if (amount <= 0 || period < 0 || period > (now_us + kMaxAheadUs) / period_us) return {};
    TRY(sql.Execute(kUpsert, {use.key_id(), static_cast<int64_t>(kind), period, source, amount}));
    return {};
  };
  TRY(put(UseKind::kRequestsOfHour, use.hour(), kHourUs, reporter, use.requests_in_hour()));
  TRY(put(UseKind::kRefusalsOfMinute, use.minute(), kMinuteUs, reporter, use.refusals_in_minute()));
  for (const uint64_t address : use.addresses()) {
    TRY(put(UseKind::kAddressesOfHour, use.hour(), kHourUs, Hex(address), 1));
  }
  return WriteRefusals(sql, reporter, use, now_us);
}

SqlResult<int64_t> SumOfUse(sql::Connection& connection, const std::string& key_id, UseKind kind,
                            int64_t period) {
  int64_t sum = 0;
  TRY(connection.Query(
      "SELECT CAST(sum(amount) AS BIGINT) FROM key_use WHERE key_id = $1 AND kind = $2 AND period "
      "= $3",
      {key_id, static_cast<int64_t>(kind), period},
      [&](const sql::Row& row) { sum = row.Int(0); }));
  return sum;
}

SqlResult<void> ReadRequests(sql::Connection& connection, std::span<const sql::Param> key_ids,
                             int64_t now_us,
                             const std::function<void(std::string key_id, int64_t count)>& add) {
  const std::string kind = std::to_string(static_cast<int64_t>(UseKind::kRequestsOfHour));
  return connection.QueryIn(
      "SELECT key_id, amount FROM key_use WHERE kind = " + kind +
          " AND period >= " + std::to_string(now_us / kHourUs - 24) + " AND key_id IN",
      key_ids, "", [&](const sql::Row& row) { add(row.Text(0), row.Int(1)); });
}

SqlResult<void> ReadRefusals(sql::Connection& connection, const std::string& workspace,
                             const std::function<void(RefusalSum)>& add) {
  return connection.Query(
      "SELECT r.quarter, r.code, r.reason, CAST(sum(r.amount) AS BIGINT) FROM virtual_key k"
      " JOIN key_refusal_reason r ON r.key_id = k.key_id WHERE k.workspace_id = $1"
      " GROUP BY r.quarter, r.code, r.reason ORDER BY r.quarter, r.code, r.reason",
      {workspace},
      [&](const sql::Row& row) { add({row.Int(0), row.Text(1), row.Text(2), row.Int(3)}); });
}

SqlResult<void> PruneKeyUse(sql::Connection& connection, int64_t now_us) {
  for (const auto& [kind, before] :
       std::map<UseKind, int64_t>{{UseKind::kRequestsOfHour, now_us / kHourUs - 25},
                                  {UseKind::kRefusalsOfMinute, now_us / kMinuteUs - 10},
                                  {UseKind::kAddressesOfHour, now_us / kHourUs - 2}}) {
    TRY(connection.Execute("DELETE FROM key_use WHERE kind = $1 AND period < $2",
                           {static_cast<int64_t>(kind), before}));
  }
  return WithoutValue(connection.Execute("DELETE FROM key_refusal_reason WHERE quarter < $1",
                                         {now_us / kQuarterUs - kKeptQuarters}));
}

}  // namespace tollgate::auth
