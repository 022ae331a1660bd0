#include "services/billing/reports/reports.h"

#include <algorithm>
#include <map>

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "services/billing/domain/ledger.h"
#include "services/billing/reports/archived_usage.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

SqlResult<void> QueryBalance(Connection& db, const std::string& workspace, int64_t now_us,
                             Balance& balance) {
  Wallet wallet;
  wallet.workspace = workspace;
  static const std::string kWallet =
      "SELECT " + std::string(kWalletColumns) + " FROM wallet WHERE shard = $1 AND workspace = $2";
  const int32_t shard = LedgerShard(workspace);
  auto read =
      db.Query(kWallet, {shard, workspace}, [&](const Row& row) { wallet = ReadWallet(row); });
  if (!read.ok()) return read;
  Month month;
  static const std::string kMonth = "SELECT " + std::string(kMonthColumns) +
                                    " FROM cap_month WHERE shard = $1 AND workspace = $2"
                                    " AND month = $3";
  read = db.Query(kMonth, {shard, workspace, UtcMonth(now_us)},
                  [&](const Row& row) { month = ReadMonth(row); });
  balance = BalanceOf(wallet, &month, now_us);
  return read;
}

void AddTo(UsageBucket& total, const UsageBucket& bucket) {
  total.requests += bucket.requests;
  total.usage.prompt += bucket.usage.prompt;
  total.usage.cached += bucket.usage.cached;
  total.usage.cache_write += bucket.usage.cache_write;
  total.usage.completion += bucket.usage.completion;
  total.usage.reasoning += bucket.usage.reasoning;
  total.charged_nano_usd += bucket.charged_nano_usd;
}

// Sums a key's usage by day and model (decision 53): reads the roll-up by day for whole UTC days,
// the roll-up by quarter of an hour for whole quarters, and single requests only for the rest at
// both ends.
class UsageSums {
 public:
  UsageSums(Connection& db, const std::string& workspace, const std::string& key_id)
      : db_(db), shard_(LedgerShard(workspace)), workspace_(workspace), key_id_(key_id) {}

  SqlResult<void> Add(int64_t start_us, int64_t end_us) {
    TRY(auto archived_us, ReadArchivedUntil(db_, workspace_));
    TRY(AddRollUp("usage_day", "", kDayUs, FirstDayByNoon(start_us),
                  FirstDayByNoon(std::min(end_us, archived_us))));
    return AddExact(std::max(start_us, archived_us), end_us);
  }

  std::map<std::pair<int32_t, std::string>, UsageBucket>& sums() { return sums_; }

 private:
  // Adds usage that is not archived.
  SqlResult<void> AddExact(int64_t start_us, int64_t end_us) {
    const int64_t first_quarter = RoundUp(start_us, kQuarterUs);
    const int64_t last_quarter = end_us / kQuarterUs * kQuarterUs;
    if (first_quarter >= last_quarter) return AddRequests(start_us, end_us);
    TRY(AddRequests(start_us, first_quarter));
    TRY(AddQuartersAndDays(first_quarter, last_quarter));
    return AddRequests(last_quarter, end_us);
  }

  SqlResult<void> AddQuartersAndDays(int64_t start_us, int64_t end_us) {
    const int64_t first_day = RoundUp(start_us, kDayUs);
    const int64_t last_day = end_us / kDayUs * kDayUs;
    if (first_day >= last_day) return AddQuarters(start_us, end_us);
    TRY(AddQuarters(start_us, first_day));
    TRY(AddRollUp("usage_day", "", kDayUs, first_day, last_day));
    return AddQuarters(last_day, end_us);
  }

  // Names the models, because they precede the period in the primary key: otherwise the query would
  // read all quarters of the key.
  SqlResult<void> AddQuarters(int64_t start_us, int64_t end_us) {
    return AddRollUp("usage_quarter",
                     " AND model IN (SELECT DISTINCT model FROM usage_day"
                     " WHERE shard = $1 AND workspace = $2 AND key_id = $3)",
                     kQuarterUs, start_us, end_us);
  }

  SqlResult<void> AddRollUp(const std::string& table, std::string_view models, int64_t unit_us,
                            int64_t start_us, int64_t end_us) {
    if (start_us >= end_us) return {};
    const std::string text =
        "SELECT model, period, requests, prompt, cached, cache_write, completion, reasoning,"
        " charged FROM " +
        table +
        " WHERE shard = $1 AND workspace = $2 AND key_id = $3 AND period >= $4 AND period < $5"
        " AND requests <> 0" +
        std::string(models);
    return db_.Query(text, {shard_, workspace_, key_id_, start_us / unit_us, end_us / unit_us},
                     [&](const Row& row) { AddRow(row, UtcDay(row.Int(1) * unit_us)); });
  }

  SqlResult<void> AddRequests(int64_t start_us, int64_t end_us) {
    if (start_us >= end_us) return {};
    return db_.Query(
        "SELECT model, day, count(*), CAST(sum(prompt) AS BIGINT), CAST(sum(cached) AS BIGINT),"
        " CAST(sum(cache_write) AS BIGINT), CAST(sum(completion) AS BIGINT),"
        " CAST(sum(reasoning) AS BIGINT), CAST(sum(charged) AS BIGINT) FROM usage_record"
        " WHERE shard = $1 AND workspace = $2 AND key_id = $3 AND admitted_us >= $4"
        " AND admitted_us < $5 AND prompt + completion > 0 GROUP BY day, model",
        {shard_, workspace_, key_id_, start_us, end_us},
        [&](const Row& row) { AddRow(row, static_cast<int32_t>(row.Int(1))); });
  }

  void AddRow(const Row& row, int32_t day) {
    UsageBucket bucket;
    bucket.model = row.Text(0);
    bucket.day = day;
    bucket.requests = row.Int(2);
    bucket.usage = {row.Int(3), row.Int(4), row.Int(5), row.Int(6), row.Int(7)};
    bucket.charged_nano_usd = row.Int(8);
    UsageBucket& sum = sums_[{day, bucket.model}];
    sum.model = bucket.model;
    sum.day = day;
    AddTo(sum, bucket);
  }

  Connection& db_;
  const int32_t shard_;
  const std::string& workspace_;
  const std::string& key_id_;
  std::map<std::pair<int32_t, std::string>, UsageBucket> sums_;
};

}  // namespace

SqlResult<UsageReport> ReadUsage(sql::Database& database, const std::string& workspace,
                                 const std::string& key_id, int64_t start_us, int64_t end_us,
                                 int64_t now_us) {
  UsageReport report;
  // Limited, so that rounding up cannot overflow.
  start_us = std::clamp<int64_t>(start_us, 0, INT64_MAX - kDayUs);
  end_us = std::clamp<int64_t>(end_us, 0, INT64_MAX - kDayUs);
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) -> SqlResult<void> {
    report = {};
    UsageSums sums(db, workspace, key_id);
    TRY(sums.Add(start_us, end_us));
    for (auto& [key, bucket] : sums.sums()) {
      AddTo(report.total, bucket);
      report.buckets.push_back(std::move(bucket));
    }
    return QueryBalance(db, workspace, now_us, report.balance);
  });
  return ValueOrError(std::move(done), std::move(report));
}

SqlResult<Balance> ReadBalance(sql::Database& database, const std::string& workspace,
                               int64_t now_us) {
  Balance balance;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    return QueryBalance(db, workspace, now_us, balance);
  });
  return ValueOrError(std::move(done), std::move(balance));
}

SqlResult<std::vector<Entry>> ReadEntries(sql::Database& database, const std::string& workspace,
                                          int limit, int64_t before) {
  std::vector<Entry> entries;
  static const std::string kText = "SELECT " + std::string(kEntryColumns) +
                                   " FROM entry WHERE shard = $1 AND workspace = $2"
                                   " AND sequence < $3 ORDER BY sequence DESC LIMIT $4";
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    entries.clear();
    return db.Query(kText,
                    {LedgerShard(workspace), workspace, before > 0 ? before : INT64_MAX, limit},
                    [&](const Row& row) { entries.push_back(ReadEntry(row)); });
  });
  return ValueOrError(std::move(done), std::move(entries));
}

SqlResult<std::vector<ExpiredHold>> ReadExpiredHolds(sql::Database& database, int64_t now_us,
                                                     int limit, const ExpiredHold& after) {
  const std::string after_id = after.id.ToBytes();
  std::vector<ExpiredHold> holds;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    holds.clear();
    return db.Query(
        "SELECT id, workspace, expires_us FROM hold WHERE state = 1 AND expires_us <= $1"
        " AND expires_us >= $2 AND (expires_us > $2 OR id > $3) ORDER BY expires_us, id LIMIT $4",
        {now_us, after.expires_us, sql::Param::Blob(after_id), limit}, [&](const Row& row) {
          holds.push_back({Id::FromBytes(row.Bytes(0)).value_or(Id()), row.Text(1), row.Int(2)});
        });
  });
  return ValueOrError(std::move(done), std::move(holds));
}

namespace {

SqlResult<int64_t> Count(sql::Database& database, const std::string& rows) {
  int64_t count = 0;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    return db.Query("SELECT count(*) FROM " + rows, {},
                    [&](const Row& row) { count = row.Int(0); });
  });
  return ValueOrError(std::move(done), count);
}

}  // namespace

// Both are fast, because the indexes hold_open and wallet_frozen contain exactly these rows.
SqlResult<int64_t> CountOpenHolds(sql::Database& database) {
  return Count(database, "hold WHERE state = 1");
}

SqlResult<int64_t> CountFrozenByCheck(sql::Database& database) {
  return Count(database, "wallet WHERE frozen = 3");
}

}  // namespace tollgate::billing
