#include "services/billing/storage/reports.h"

#include "common/base/clock.h"
#include "services/billing/domain/ledger.h"
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
      "SELECT " + std::string(kWalletColumns) + " FROM wallet WHERE workspace = $1";
  auto read = db.Query(kWallet, {workspace}, [&](const Row& row) { wallet = ReadWallet(row); });
  if (!read.ok()) return read;
  Month month;
  static const std::string kMonth =
      "SELECT " + std::string(kMonthColumns) + " FROM cap_month WHERE id = $1";
  read = db.Query(kMonth, {MonthKey(workspace, UtcMonth(now_us))},
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

template <typename T>
SqlResult<T> ValueOrError(SqlResult<void> done, T value) {
  if (!done.ok()) return Fail{std::move(done).error()};
  return value;
}

}  // namespace

SqlResult<UsageReport> ReadUsage(sql::Database& database, const std::string& workspace,
                                 const std::string& key_id, int64_t start_us, int64_t end_us,
                                 int64_t now_us) {
  UsageReport report;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) -> SqlResult<void> {
    report = {};
    auto read = db.Query(
        "SELECT model, day, count(*), CAST(sum(prompt) AS BIGINT), CAST(sum(cached) AS BIGINT),"
        " CAST(sum(cache_write) AS BIGINT), CAST(sum(completion) AS BIGINT),"
        " CAST(sum(reasoning) AS BIGINT), CAST(sum(charged) AS BIGINT) FROM usage_record"
        " WHERE workspace = $1 AND key_id = $2 AND admitted_us >= $3 AND admitted_us < $4"
        " AND prompt + completion > 0 GROUP BY day, model ORDER BY day, model",
        {workspace, key_id, start_us, end_us}, [&](const Row& row) {
          UsageBucket bucket;
          bucket.model = row.Text(0);
          bucket.day = static_cast<int32_t>(row.Int(1));
          bucket.requests = row.Int(2);
          bucket.usage = {row.Int(3), row.Int(4), row.Int(5), row.Int(6), row.Int(7)};
          bucket.charged_nano_usd = row.Int(8);
          AddTo(report.total, bucket);
          report.buckets.push_back(std::move(bucket));
        });
    if (!read.ok()) return read;
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
                                   " FROM entry WHERE workspace = $1 AND sequence < $2"
                                   " ORDER BY sequence DESC LIMIT $3";
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    entries.clear();
    return db.Query(kText, {workspace, before > 0 ? before : INT64_MAX, limit},
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

SqlResult<int64_t> CountOpenHolds(sql::Database& database) {
  // Fast: the index hold_open contains exactly these rows.
  int64_t count = 0;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    return db.Query("SELECT count(*) FROM hold WHERE state = 1", {},
                    [&](const Row& row) { count = row.Int(0); });
  });
  return ValueOrError(std::move(done), count);
}

}  // namespace tollgate::billing
