#include "services/billing/verify/verifications.h"

#include "common/base/try.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

constexpr std::string_view kSelect =
    "SELECT id, actor, workspace, state, created_us, reported_us, ended_us, workspaces, entries, "
    "holds, usage_records, violations FROM ledger_verification";

// Runs report every second.
constexpr int64_t kDeadAfterUs = 60'000'000;
constexpr int64_t kKeepVerificationsUs = int64_t{90} * 24 * 3600 * 1'000'000;

std::string Lines(const std::vector<std::string>& texts) {
  std::string lines;
  for (std::string text : texts) {
    for (char& c : text) {
      if (c == '\n') c = ' ';
    }
    lines += text + "\n";
  }
  return lines;
}

Verification ReadVerification(const Row& row, int64_t now_us) {
  Verification one;
  one.id = Id::FromHex(row.Text(0)).value_or(Id());
  one.actor = row.Text(1);
  one.workspace = row.Text(2);
  one.state = static_cast<VerificationState>(row.Int(3));
  one.created_us = row.Int(4);
  one.ended_us = row.Int(6);
  if (one.state == VerificationState::kRunning && row.Int(5) < now_us - kDeadAfterUs) {
    one.state = VerificationState::kBrokenOff;
    one.ended_us = row.Int(5);
  }
  one.report.workspaces = row.Int(7);
  one.report.entries = row.Int(8);
  one.report.holds = row.Int(9);
  one.report.usage_records = row.Int(10);
  const std::string lines = row.Text(11);
  for (size_t begin = 0; begin < lines.size();) {
    const size_t end = lines.find('\n', begin);
    one.report.violations.push_back(lines.substr(begin, end - begin));
    begin = end + 1;
  }
  return one;
}

SqlResult<std::optional<Verification>> FindBy(Connection& db, std::string_view column,
                                              const std::string& value, int64_t now_us) {
  std::optional<Verification> found;
  TRY(db.Query(std::string(kSelect) + " WHERE " + std::string(column) + " = $1", {value},
               [&](const Row& row) { found = ReadVerification(row, now_us); }));
  return found;
}

SqlResult<Begun> Begin(Connection& db, const Verification& asked, const audit::Origin& by,
                       bool may_run, int64_t now_us) {
  Begun begun;
  const std::string caller_request = asked.actor + "\n" + asked.request_id;
  TRY(auto known, FindBy(db, "caller_request", caller_request, now_us));
  if (known) {
    begun.request_reused = known->workspace != asked.workspace;
    if (!begun.request_reused) begun.verification = std::move(known);
    return begun;
  }
  if (!may_run) return begun;
  TRY(WithoutValue(
      db.Execute("UPDATE ledger_verification SET state = $1, ended_us = reported_us"
                 " WHERE state = 1 AND reported_us < $2",
                 {static_cast<int>(VerificationState::kBrokenOff), now_us - kDeadAfterUs})));
  if (asked.actor != kNightlyActor) {
    // Its next report says that it must end; it begins again an hour later.
    TRY(WithoutValue(db.Execute(
        "UPDATE ledger_verification SET state = $1, ended_us = $2"
        " WHERE state = 1 AND actor = $3",
        {static_cast<int>(VerificationState::kBrokenOff), now_us, std::string(kNightlyActor)})));
  }
  TRY(WithoutValue(
      db.Execute("DELETE FROM ledger_verification WHERE state <> 1 AND created_us < $1",
                 {now_us - kKeepVerificationsUs})));
  // The unique index of running verifications allows only one.
  TRY(auto added,
      db.Execute(
          "INSERT INTO ledger_verification (id, caller_request, actor, workspace, state, cancel,"
          " created_us, reported_us, ended_us, workspaces, entries, holds, usage_records, "
          "violations)"
          " VALUES ($1, $2, $3, $4, 1, 0, $5, $5, 0, 0, 0, 0, 0, '') ON CONFLICT DO NOTHING",
          {asked.id.ToHex(), caller_request, asked.actor, asked.workspace, now_us}));
  if (added == 0) return begun;
  TRY(audit::Append(
      db, audit::kEntries,
      audit::RecordOf(by, now_us, "ledger_verification.create", asked.workspace, asked.id.ToHex(),
                      asked.workspace.empty() ? "every workspace" : "")));
  begun.fresh = true;
  begun.verification = asked;
  begun.verification->created_us = now_us;
  return begun;
}

}  // namespace

VerificationState StateOf(const VerifyReport& report) {
  if (report.stopped) return VerificationState::kBrokenOff;
  return report.ok() ? VerificationState::kConsistent : VerificationState::kViolated;
}

SqlResult<Begun> BeginVerification(sql::Database& database, const Verification& asked,
                                   const audit::Origin& by, bool may_run, int64_t now_us) {
  Begun begun;
  auto done = database.Transact(sql::TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    TRY(auto result, Begin(db, asked, by, may_run, now_us));
    begun = std::move(result);
    return {};
  });
  if (!done.ok()) return Fail{done.error()};
  return begun;
}

SqlResult<bool> ReportVerification(sql::Database& database, const Id& id,
                                   const VerifyReport& report, int64_t now_us) {
  int64_t changed = 0;
  auto done = database.Transact(sql::TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    TRY(auto updated,
        db.Execute("UPDATE ledger_verification SET reported_us = $1, workspaces = $2, entries = $3,"
                   " holds = $4, usage_records = $5 WHERE id = $6 AND state = 1 AND cancel = 0",
                   {now_us, report.workspaces, report.entries, report.holds, report.usage_records,
                    id.ToHex()}));
    changed = updated;
    return {};
  });
  if (!done.ok()) return Fail{done.error()};
  return changed == 1;
}

SqlResult<void> EndVerification(sql::Database& database, const Id& id, VerificationState state,
                                const VerifyReport& report, int64_t now_us) {
  return database.Transact(sql::TxMode::kWrite, [&](Connection& db) {
    return WithoutValue(db.Execute(
        "UPDATE ledger_verification SET state = CASE WHEN $1 = 5 AND cancel = 1 THEN 4 ELSE $1 END,"
        " reported_us = $2, ended_us = $2, workspaces = $3, entries = $4, holds = $5,"
        " usage_records = $6, violations = $7 WHERE id = $8 AND state IN (1, 5)",
        {static_cast<int64_t>(state), now_us, report.workspaces, report.entries, report.holds,
         report.usage_records, Lines(report.violations), id.ToHex()}));
  });
}

SqlResult<void> CancelVerification(sql::Database& database, const Id& id, const audit::Origin& by,
                                   int64_t now_us) {
  return database.Transact(sql::TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    TRY(
        WithoutValue(db.Execute("UPDATE ledger_verification SET state = 4, ended_us = reported_us"
                                " WHERE id = $1 AND state = 1 AND reported_us < $2",
                                {id.ToHex(), now_us - kDeadAfterUs})));
    TRY(auto cancelled,
        db.Execute(
            "UPDATE ledger_verification SET cancel = 1 WHERE id = $1 AND state = 1 AND cancel = 0",
            {id.ToHex()}));
    if (cancelled == 0) return {};
    return audit::Append(
        db, audit::kEntries,
        audit::RecordOf(by, now_us, "ledger_verification.cancel", "", id.ToHex(), ""));
  });
}

SqlResult<std::optional<Verification>> FindVerification(sql::Database& database, const Id& id,
                                                        int64_t now_us) {
  std::optional<Verification> found;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) -> SqlResult<void> {
    TRY(auto read, FindBy(db, "id", id.ToHex(), now_us));
    found = std::move(read);
    return {};
  });
  if (!done.ok()) return Fail{done.error()};
  return found;
}

SqlResult<std::optional<Verification>> NewestVerification(sql::Database& database,
                                                          std::string_view actor, bool complete,
                                                          int64_t now_us) {
  std::optional<Verification> newest;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    newest.reset();
    return db.Query(std::string(kSelect) + " WHERE actor = $1 AND workspace = ''" +
                        (complete ? " AND state IN (2, 3)" : "") + " ORDER BY id DESC LIMIT 1",
                    {actor}, [&](const Row& row) { newest = ReadVerification(row, now_us); });
  });
  if (!done.ok()) return Fail{done.error()};
  return newest;
}

SqlResult<std::vector<Verification>> ListVerifications(sql::Database& database, const Id& before,
                                                       int limit, int64_t now_us) {
  std::vector<Verification> rows;
  const std::string below = before.empty() ? "g" : before.ToHex();  // g sorts after every digit
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    rows.clear();
    return db.Query(std::string(kSelect) + " WHERE id < $1 ORDER BY id DESC LIMIT $2",
                    {below, limit},
                    [&](const Row& row) { rows.push_back(ReadVerification(row, now_us)); });
  });
  if (!done.ok()) return Fail{done.error()};
  return rows;
}

}  // namespace tollgate::billing
