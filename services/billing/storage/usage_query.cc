#include "services/billing/storage/usage_query.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "services/billing/domain/shard.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

constexpr int64_t kDayUs = 86'400LL * 1'000'000;

int64_t RoundUp(int64_t value, int64_t unit) {
  return value / unit * unit + (value % unit > 0 ? unit : 0);
}

class Sums {
 public:
  Sums(Connection& db, const UsageQuery& query)
      : db_(db), query_(query), shard_(LedgerShard(query.workspace)) {}

  SqlResult<void> Read() {
    const int64_t start_us = query_.bounds_us.front();
    const int64_t end_us = query_.bounds_us.back();
    const int64_t first_quarter = RoundUp(start_us, kQuarterUs);
    const int64_t last_quarter = end_us / kQuarterUs * kQuarterUs;
    if (first_quarter >= last_quarter) return AddRequests(start_us, end_us);
    if (auto done = AddRequests(start_us, first_quarter); !done.ok()) return done;
    if (auto done = AddRequests(last_quarter, end_us); !done.ok()) return done;
    const int64_t first_day = RoundUp(first_quarter, kDayUs);
    const int64_t last_day = last_quarter / kDayUs * kDayUs;
    if (!query_.whole_days || first_day >= last_day) {
      return AddQuarters(first_quarter, last_quarter);
    }
    if (auto done = AddQuarters(first_quarter, first_day); !done.ok()) {
      return done;
    }
    if (auto done = AddRollUp("usage_day", "", kDayUs, first_day, last_day); !done.ok())
      return done;
    return AddQuarters(last_day, last_quarter);
  }

  std::vector<UsageSum> Take() {
    std::vector<UsageSum> rows;
    for (auto& [key, sums] : sums_) {
      if (sums.requests == 0 && sums.free_requests == 0 && sums.charged_nano_usd == 0) continue;
      rows.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::move(sums)});
    }
    return rows;
  }

 private:
  // The rows of the workspace in this period, and of the key ($5) and the model that are asked for.
  std::string Where(std::string_view time, std::vector<sql::Param>& params) const {
    std::string text = " WHERE shard = $1 AND workspace = $2 AND " + std::string(time) +
                       " >= $3 AND " + std::string(time) + " < $4";
    for (const auto& [column, value] :
         {std::pair("key_id", &query_.key_id), std::pair("model", &query_.model)}) {
      if (!*value) continue;
      params.emplace_back(**value);
      text += " AND " + std::string(column) + " = $" + std::to_string(params.size());
    }
    return text;
  }

  // Names the keys and models, which stand before the period in the key: else all quarters that the
  // workspace has ever used would be read.
  SqlResult<void> AddQuarters(int64_t start_us, int64_t end_us) {
    return AddRollUp("usage_quarter",
                     " AND (key_id, model) IN (SELECT DISTINCT key_id, model FROM usage_day"
                     " WHERE shard = $1 AND workspace = $2" +
                         std::string(query_.key_id ? " AND key_id = $5)" : ")"),
                     kQuarterUs, start_us, end_us);
  }

  SqlResult<void> AddRollUp(const std::string& table, const std::string& keys, int64_t unit_us,
                            int64_t start_us, int64_t end_us) {
    if (start_us >= end_us) return {};
    std::vector<sql::Param> params = {shard_, query_.workspace, start_us / unit_us,
                                      end_us / unit_us};
    const std::string text =
        "SELECT key_id, model, period, requests, free_requests, prompt, cached, cache_write,"
        " completion, reasoning, charged, overrun FROM " +
        table + Where("period", params) + keys;
    return db_.Query(text, params, [&](const Row& row) {
      const UsageChange change = ReadSums(row);
      Add(row.Text(0), row.Text(1), row.Int(2) * unit_us, change);
    });
  }

  SqlResult<void> AddRequests(int64_t start_us, int64_t end_us) {
    if (start_us >= end_us) return {};
    std::vector<sql::Param> params = {shard_, query_.workspace, start_us, end_us};
    const std::string text =
        "SELECT key_id, model, admitted_us,"
        " CAST(CASE WHEN prompt + completion > 0 THEN 1 ELSE 0 END AS BIGINT),"
        " CAST(CASE WHEN prompt + completion > 0 THEN 0 ELSE 1 END AS BIGINT),"
        " prompt, cached, cache_write, completion, reasoning, charged, overrun FROM usage_record" +
        Where("admitted_us", params);
    return db_.Query(text, params, [&](const Row& row) {
      Add(row.Text(0), row.Text(1), row.Int(2), ReadSums(row));
    });
  }

  static UsageChange ReadSums(const Row& row) {
    UsageChange change;
    change.requests = row.Int(3);
    change.free_requests = row.Int(4);
    change.usage = {row.Int(5), row.Int(6), row.Int(7), row.Int(8), row.Int(9)};
    change.charged_nano_usd = row.Int(10);
    change.overrun_nano_usd = row.Int(11);
    return change;
  }

  void Add(std::string key_id, std::string model, int64_t at_us, const UsageChange& change) {
    const auto after = std::upper_bound(query_.bounds_us.begin(), query_.bounds_us.end(), at_us);
    const size_t interval = std::max<size_t>(after - query_.bounds_us.begin(), 1) - 1;
    sums_[{std::min(interval, query_.bounds_us.size() - 2),
           query_.by_model ? std::move(model) : std::string(),
           query_.by_key ? std::move(key_id) : std::string()}] += change;
  }

  Connection& db_;
  const UsageQuery& query_;
  const int32_t shard_;
  std::map<std::tuple<size_t, std::string, std::string>, UsageChange> sums_;
};

}  // namespace

SqlResult<std::vector<UsageSum>> QueryUsage(sql::Database& database, const UsageQuery& query) {
  std::vector<UsageSum> rows;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) -> SqlResult<void> {
    Sums sums(db, query);
    if (auto read = sums.Read(); !read.ok()) return read;
    rows = sums.Take();
    return {};
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return rows;
}

}  // namespace tollgate::billing
