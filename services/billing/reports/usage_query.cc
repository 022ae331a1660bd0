#include "services/billing/reports/usage_query.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/ledger_shard.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "services/billing/reports/archived_usage.h"
#include "services/billing/reports/rollup_changes.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

constexpr std::string_view kRequestSums =
    "CAST(CASE WHEN prompt + completion > 0 THEN 1 ELSE 0 END AS BIGINT),"
    " CAST(CASE WHEN prompt + completion > 0 THEN 0 ELSE 1 END AS BIGINT),"
    " prompt, cached, cache_write, completion, reasoning, charged, overrun";

// Ids are at most 7 days older and 24 hours newer than the admission (docs/design/ledger.md 3).
constexpr int64_t kOldestIdUs = 8 * kDayUs;
constexpr int64_t kNewestIdUs = 2 * kDayUs;

std::string IdAt(int64_t us) {
  return Id::Make(std::clamp<int64_t>(us / 1000, 0, (int64_t{1} << 48) - 1), 0, 0).ToBytes();
}

class Sums {
 public:
  // fresh: changes after the cut of the workspace's roll-ups, which are then read. Null: reads the
  // roll-ups by key.
  Sums(Connection& db, const UsageQuery& query, const FreshChanges* fresh)
      : db_(db), query_(query), fresh_(fresh), shard_(LedgerShard(query.workspace)) {}

  SqlResult<void> Read() {
    const int64_t start_us = query_.bounds_us.front();
    const int64_t end_us = query_.bounds_us.back();
    TRY(auto archived_us, ReadArchivedUntil(db_, query_.workspace));
    TRY(AddDays(FirstDayByNoon(start_us), FirstDayByNoon(std::min(end_us, archived_us))));
    return AddExact(std::max(start_us, archived_us), end_us);
  }

  std::vector<UsageSum> Take() {
    std::vector<UsageSum> rows;
    for (auto& [key, sums] : sums_) {
      if (sums.requests == 0 && sums.free_requests == 0 && sums.charged_nano_usd == 0) continue;
      rows.push_back(
          {std::get<0>(key), std::get<1>(key), std::get<2>(key), false, std::move(sums)});
    }
    return rows;
  }

 private:
  // Adds usage that is not archived.
  SqlResult<void> AddExact(int64_t start_us, int64_t end_us) {
    const int64_t first_quarter = RoundUp(start_us, kQuarterUs);
    const int64_t last_quarter = end_us / kQuarterUs * kQuarterUs;
    if (first_quarter >= last_quarter) return AddRequests(start_us, end_us);
    TRY(AddRequests(start_us, first_quarter));
    TRY(AddRequests(last_quarter, end_us));
    if (fresh_ != nullptr) AddFresh(first_quarter, last_quarter);
    const int64_t first_day = RoundUp(first_quarter, kDayUs);
    const int64_t last_day = last_quarter / kDayUs * kDayUs;
    if (!query_.whole_days || first_day >= last_day) {
      return AddQuarters(first_quarter, last_quarter);
    }
    TRY(AddQuarters(first_quarter, first_day));
    TRY(AddDays(first_day, last_day));
    return AddQuarters(last_day, last_quarter);
  }

  // Condition for rows of the workspace in this period, of the requested key ($5) and model.
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

  SqlResult<void> AddDays(int64_t start_us, int64_t end_us) {
    if (fresh_ != nullptr) return AddWorkspace("workspace_day", kDayUs, start_us, end_us);
    return AddRollUp("usage_day", "", kDayUs, start_us, end_us);
  }

  // Names keys and models, because they precede the period in the primary key: otherwise the query
  // would read all quarters of the workspace.
  SqlResult<void> AddQuarters(int64_t start_us, int64_t end_us) {
    if (fresh_ != nullptr) return AddWorkspace("workspace_quarter", kQuarterUs, start_us, end_us);
    return AddRollUp("usage_quarter",
                     " AND (key_id, model) IN (SELECT DISTINCT key_id, model FROM usage_day"
                     " WHERE shard = $1 AND workspace = $2" +
                         std::string(query_.key_id ? " AND key_id = $5)" : ")"),
                     kQuarterUs, start_us, end_us);
  }

  SqlResult<void> AddWorkspace(const std::string& table, int64_t unit_us, int64_t start_us,
                               int64_t end_us) {
    if (start_us >= end_us) return {};
    std::vector<sql::Param> params = {shard_, query_.workspace, start_us / unit_us,
                                      end_us / unit_us};
    const std::string text =
        "SELECT period, model, shard, requests, free_requests, prompt, cached, cache_write,"
        " completion, reasoning, charged, overrun FROM " +
        table + Where("period", params);
    return db_.Query(text, params, [&](const Row& row) {
      Add("", row.Text(1), row.Int(0) * unit_us + unit_us / 2, ReadSums(row));
    });
  }

  void AddFresh(int64_t start_us, int64_t end_us) {
    for (const RequestChange& request : fresh_->changes.requests) {
      if (request.ended && IsIn(request, start_us, end_us)) {
        Add(request.key_id, request.model, request.admitted_us, request.sums);
      }
    }
  }

  bool IsIn(const RequestChange& request, int64_t start_us, int64_t end_us) const {
    return request.admitted_us >= start_us && request.admitted_us < end_us &&
           request.admitted_us >= fresh_->cut.base_us &&
           (!query_.model || request.model == *query_.model);
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
      Add(row.Text(0), row.Text(1), row.Int(2) * unit_us + unit_us / 2, change);
    });
  }

  SqlResult<void> AddRequests(int64_t start_us, int64_t end_us) {
    if (start_us >= end_us) return {};
    if (fresh_ != nullptr) return AddRequestsOfDay(start_us, end_us);
    std::vector<sql::Param> params = {shard_, query_.workspace, start_us, end_us};
    const std::string text = "SELECT key_id, model, admitted_us, " + std::string(kRequestSums) +
                             " FROM usage_record" + Where("admitted_us", params);
    return db_.Query(text, params, [&](const Row& row) {
      Add(row.Text(0), row.Text(1), row.Int(2), ReadSums(row));
    });
  }

  // Requests are found by key, so this reads the requests of all keys used on the day.
  SqlResult<void> AddRequestsOfDay(int64_t start_us, int64_t end_us) {
    const std::string oldest = IdAt(start_us - kOldestIdUs);
    const std::string newest = IdAt(end_us + kNewestIdUs);
    std::vector<sql::Param> params = {
        shard_,   query_.workspace, start_us / kDayUs,        (end_us - 1) / kDayUs,
        start_us, end_us,           sql::Param::Blob(oldest), sql::Param::Blob(newest)};
    std::string text =
        "SELECT u.key_id, model, admitted_us, " + std::string(kRequestSums) +
        " FROM (SELECT DISTINCT key_id FROM key_spend_day WHERE shard = $1 AND workspace = $2"
        " AND period >= $3 AND period <= $4) k CROSS JOIN usage_record u WHERE u.shard = $1"
        " AND u.workspace = $2 AND u.key_id = k.key_id AND admitted_us >= $5 AND admitted_us < $6"
        " AND u.id >= $7 AND u.id < $8";
    if (query_.model) {
      params.emplace_back(*query_.model);
      text += " AND model = $9";
    }
    // A key whose first request of the day has just ended is missing in the roll-ups.
    std::set<std::string, std::less<>> keys;
    auto read = db_.Query(text, params, [&](const Row& row) {
      keys.emplace(row.Bytes(0));
      Add(row.Text(0), row.Text(1), row.Int(2), ReadSums(row));
    });
    if (!read.ok()) return read;
    for (const RequestChange& request : fresh_->changes.requests) {
      if (!request.ended || keys.contains(request.key_id)) continue;
      if (!IsIn(request, start_us, end_us)) continue;
      Add(request.key_id, request.model, request.admitted_us, request.sums);
    }
    return {};
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
  const FreshChanges* const fresh_;
  const int32_t shard_;
  std::map<std::tuple<size_t, std::string, std::string>, UsageChange> sums_;
};

// Finds the groups with the highest cost in a workspace with many keys.
class TopKeys {
 public:
  TopKeys(Connection& db, const UsageQuery& query, const FreshChanges& fresh)
      : db_(db), query_(query), fresh_(fresh), shard_(LedgerShard(query.workspace)) {}

  SqlResult<std::vector<UsageSum>> Read() {
    TRY(ReadBounds());
    TRY(FindTop());
    UsageQuery all = query_;
    all.by_model = all.by_key = false;
    Sums totals(db_, all, &fresh_);
    TRY(totals.Read());
    std::map<size_t, UsageChange> others;
    for (UsageSum& sum : totals.Take()) others[sum.interval] = std::move(sum.sums);
    TRY(ReadTop(others));
    for (auto& [interval, sums] : others) {
      if (sums.requests == 0 && sums.free_requests == 0 && sums.charged_nano_usd == 0) continue;
      rows_.push_back({interval, "", "", true, std::move(sums)});
    }
    return std::move(rows_);
  }

 private:
  using Group = std::pair<std::string, std::string>;  // model, key

  // Reads an upper bound for the groups of each key: the amount charged to the key in all days, or
  // months, that the period touches.
  SqlResult<void> ReadBounds() {
    const int64_t start_us = query_.bounds_us.front();
    const int64_t last_us = query_.bounds_us.back() - 1;
    const bool days = last_us / kDayUs - start_us / kDayUs < kMostDays;
    std::unordered_map<std::string, int64_t> bounds;
    TRY(db_.Query("SELECT key_id, charged FROM " +
                      std::string(days ? "key_spend_day" : "key_spend_month") +
                      " WHERE shard = $1 AND workspace = $2 AND period >= $3 AND period <= $4",
                  {shard_, query_.workspace, days ? start_us / kDayUs : UtcMonth(start_us),
                   days ? last_us / kDayUs : UtcMonth(last_us)},
                  [&](const Row& row) { bounds[row.Text(0)] += row.Int(1); }));
    for (const RequestChange& request : fresh_.changes.requests) {
      bounds[request.key_id] += std::max<int64_t>(request.charged_nano_usd, 0);
    }
    for (auto& [key, bound] : bounds) bounds_.emplace_back(-bound, key);
    std::ranges::sort(bounds_);
    return {};
  }

  UsageQuery OfKey(const std::string& key) const {
    UsageQuery one = query_;
    one.key_id = key;
    one.by_key = true;
    return one;
  }

  // Visits keys in the order of their bounds, until no further key can be in the top.
  SqlResult<void> FindTop() {
    for (const auto& [negative_bound, key] : bounds_) {
      // Groups with equal cost are ordered by name, which is not known yet.
      if (top_.size() == query_.top && top_.rbegin()->first < negative_bound) break;
      UsageQuery one = OfKey(key);
      one.bounds_us = {query_.bounds_us.front(), query_.bounds_us.back()};
      one.whole_days = true;
      Sums sums(db_, one, nullptr);
      TRY(sums.Read());
      for (const UsageSum& sum : sums.Take()) {
        top_.emplace(-sum.sums.charged_nano_usd, Group(sum.model, sum.key_id));
      }
      while (top_.size() > query_.top) top_.erase(std::prev(top_.end()));
    }
    return {};
  }

  // Groups of the top by interval; subtracts them from the others.
  SqlResult<void> ReadTop(std::map<size_t, UsageChange>& others) {
    std::set<Group> groups;
    std::set<std::string> keys;
    for (const auto& [cost, group] : top_) {
      groups.insert(group);
      keys.insert(group.second);
    }
    for (const std::string& key : keys) {
      const UsageQuery one = OfKey(key);
      Sums sums(db_, one, nullptr);
      TRY(sums.Read());
      for (UsageSum& sum : sums.Take()) {
        if (!groups.contains(Group(sum.model, sum.key_id))) continue;
        UsageChange& rest = others[sum.interval];
        const UsageChange& c = sum.sums;
        UsageChange taken;
        taken.requests = -c.requests;
        taken.free_requests = -c.free_requests;
        taken.usage = {-c.usage.prompt, -c.usage.cached, -c.usage.cache_write, -c.usage.completion,
                       -c.usage.reasoning};
        taken.charged_nano_usd = -c.charged_nano_usd;
        taken.overrun_nano_usd = -c.overrun_nano_usd;
        rest += taken;
        rows_.push_back(std::move(sum));
      }
    }
    return {};
  }

  // Longer periods use bounds by month.
  static constexpr int64_t kMostDays = 16;

  Connection& db_;
  const UsageQuery& query_;
  const FreshChanges& fresh_;
  const int32_t shard_;
  std::vector<std::pair<int64_t, std::string>> bounds_;  // negative bound, key
  std::set<std::pair<int64_t, Group>> top_;              // negative cost, group
  std::vector<UsageSum> rows_;
};

// Whether a request was corrected after the cut of the roll-ups, whose sums for it are then
// unknown.
bool IsCorrectedIn(const UsageQuery& query, const FreshChanges& fresh) {
  return std::ranges::any_of(fresh.changes.requests, [&](const RequestChange& request) {
    return request.corrected && !request.ended &&
           request.admitted_us < query.bounds_us.back() + kDayUs &&
           request.admitted_us > query.bounds_us.front() - kDayUs;
  });
}

SqlResult<std::vector<UsageSum>> ReadSums(Connection& db, const UsageQuery& query) {
  const FreshChanges* fresh = nullptr;
  std::optional<FreshChanges> changes;
  // A single key uses the roll-ups by key. So do all groups by key, which would read as many rows
  // here.
  if (!query.key_id && (!query.by_key || query.top > 0)) {
    TRY(auto read, ReadFreshChanges(db, query.workspace));
    changes = std::move(read);
    if (changes && !IsCorrectedIn(query, *changes)) fresh = &*changes;
  }
  if (fresh != nullptr && query.by_key) return TopKeys(db, query, *fresh).Read();
  Sums sums(db, query, fresh);
  TRY(sums.Read());
  return sums.Take();
}

}  // namespace

SqlResult<std::vector<UsageSum>> QueryUsage(sql::Database& database, const UsageQuery& query) {
  std::vector<UsageSum> rows;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) -> SqlResult<void> {
    TRY(auto read, ReadSums(db, query));
    rows = std::move(read);
    return {};
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return rows;
}

}  // namespace tollgate::billing
