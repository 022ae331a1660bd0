#include "services/billing/storage/key_months.h"

#include <map>
#include <string>

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/sort_unique.h"
#include "common/base/try.h"
#include "services/billing/storage/row_texts.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::Param;
using sql::Row;
using sql::SqlResult;

// Creates the row with the key's spend of the month from the roll-ups.
SqlResult<void> StartKeyMonth(sql::Connection& db, const std::string& workspace,
                              const std::string& key_id, int32_t month, State& state) {
  KeyMonth row{workspace, key_id, month};
  TRY(
      db.Query("SELECT CAST(coalesce(sum(charged), 0) AS BIGINT) FROM usage_day WHERE shard = $1"
               " AND workspace = $2 AND key_id = $3 AND period >= $4 AND period < $5",
               {LedgerShard(workspace), workspace, key_id, UtcDay(UtcMonthStartUs(month)),
                UtcDay(UtcMonthStartUs(NextMonth(month)))},
               [&](const Row& sum) { row.spent_nano_usd = sum.Int(0); }));
  state.key_months.emplace(KeyMonthKey(workspace, key_id, month), std::move(row));
  return {};
}

}  // namespace

std::vector<WantedKeyMonth> BeginningKeyMonths(std::span<const Operation> operations,
                                               int64_t now_us, const State& state) {
  std::vector<WantedKeyMonth> beginning;
  const int32_t month_now = UtcMonth(now_us);
  for (const Operation& op : operations) {
    const auto* authorize = std::get_if<Authorize>(&op);
    if (authorize == nullptr || !authorize->key_quota_nano_usd) continue;
    beginning.push_back({authorize->workspace, authorize->key_id, month_now});
  }
  for (const auto& [id, hold] : state.holds) {
    if (hold.tombstone() || hold.month == month_now) continue;
    beginning.push_back({hold.workspace, hold.key_id, month_now});
  }
  SortUnique(beginning);
  return beginning;
}

namespace {

// Key months of requests that start and continue in this batch: their holds are not in the database
// yet.
std::vector<WantedKeyMonth> KeyMonthsOfNewHolds(std::span<const Operation> operations,
                                                int64_t now_us) {
  std::vector<WantedKeyMonth> wanted;
  std::map<Id, const Authorize*> begun;
  for (const Operation& op : operations) {
    if (const Admission* admission = AdmissionOf(op)) {
      // The request may be dated back to the month of its lease, and end with this operation.
      wanted.push_back({WorkspaceOf(op), admission->authorize.key_id, admission->month});
      wanted.push_back({WorkspaceOf(op), admission->authorize.key_id, UtcMonth(now_us)});
    } else if (const auto* authorize = std::get_if<Authorize>(&op)) {
      begun.emplace(authorize->request_id, authorize);
      for (const std::string& key_id : authorize->quota_keys) {
        wanted.push_back({authorize->workspace, key_id, UtcMonth(now_us)});
      }
    } else if (const auto of = begun.find(RequestIdOf(op)); of != begun.end()) {
      wanted.push_back({of->second->workspace, of->second->key_id, UtcMonth(now_us)});
    }
  }
  return wanted;
}

}  // namespace

SqlResult<void> LoadKeyMonths(sql::Connection& db, std::span<const Operation> operations,
                              std::span<const WantedKeyMonth> beginning, int64_t now_us,
                              State& state) {
  std::vector<WantedKeyMonth> wanted = KeyMonthsOfNewHolds(operations, now_us);
  wanted.insert(wanted.end(), beginning.begin(), beginning.end());
  for (const auto& [id, hold] : state.holds) {
    if (hold.tombstone()) continue;
    wanted.push_back({hold.workspace, hold.key_id, hold.month});
    wanted.push_back({hold.workspace, hold.key_id, UtcMonth(now_us)});
    for (const std::string& key_id : hold.quota_keys) {
      wanted.push_back({hold.workspace, key_id, hold.month});
      wanted.push_back({hold.workspace, key_id, UtcMonth(now_us)});
    }
  }
  SortUnique(wanted);
  std::vector<Param> keys;
  for (const WantedKeyMonth& row : wanted) {
    keys.insert(keys.end(), {LedgerShard(row.workspace), row.workspace, row.key_id, row.month});
  }
  static const std::string kHead = Select(kKeyMonthColumns, "key_month");
  static constexpr sql::Connection::KeyColumn kKey[] = {{"shard", Param::Kind::kInt},
                                                        {"workspace", Param::Kind::kText},
                                                        {"key_id", Param::Kind::kText},
                                                        {"month", Param::Kind::kInt}};
  return db.QueryKeys(kHead, kKey, keys, "", [&state](const Row& row) {
    KeyMonth month = ReadKeyMonth(row);
    std::string key = KeyMonthKey(month.workspace, month.key_id, month.month);
    state.key_months.emplace(std::move(key), std::move(month));
  });
}

SqlResult<void> StartKeyMonths(sql::Connection& db, std::span<const WantedKeyMonth> beginning,
                               State& state) {
  for (const WantedKeyMonth& row : beginning) {
    const std::string workspace(row.workspace);
    const std::string key_id(row.key_id);
    if (state.key_months.contains(KeyMonthKey(workspace, key_id, row.month))) continue;
    TRY(StartKeyMonth(db, workspace, key_id, row.month, state));
  }
  return {};
}

}  // namespace tollgate::billing
