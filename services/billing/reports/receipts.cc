#include "services/billing/reports/receipts.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/reports/transactions.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

// An id has the gateway's time, an admission the ledger's: the clocks may differ by this much.
constexpr int64_t kClockSlackUs = 3600LL * 1'000'000;
// A request admitted from a lease, and reported when its month takes no more charges, is dated at
// the start of the next month: up to this much later than its id (Policy::id_max_age_us).
constexpr int64_t kLateReportUs = 7LL * 24 * 3600 * 1'000'000;

SqlResult<std::optional<Hold>> ReadHoldOf(Connection& db, const std::string& workspace,
                                          const Id& id) {
  std::optional<Hold> hold;
  static const std::string kText =
      "SELECT " + std::string(kHoldColumns) + " FROM hold WHERE shard = $1 AND id = $2";
  const std::string bytes = id.ToBytes();
  TRY(db.Query(kText, {LedgerShard(workspace), sql::Param::Blob(bytes)},
               [&](const Row& row) { hold = ReadHold(row); }));
  // A shard has many workspaces, and a tombstone was never a request.
  if (hold && (hold->workspace != workspace || hold->tombstone())) hold.reset();
  return hold;
}

// Finds the hold with this id in any workspace. An id has no shard, so every shard is probed by
// key.
SqlResult<std::optional<Hold>> FindHold(Connection& db, const Id& id) {
  std::optional<Hold> hold;
  static const std::string kText = [] {
    std::string text = "SELECT " + std::string(kHoldColumns) + " FROM hold WHERE shard IN (0";
    for (int shard = 1; shard < kLedgerShards; ++shard) text += "," + std::to_string(shard);
    return text + ") AND id = $1";
  }();
  const std::string bytes = id.ToBytes();
  auto read = db.Query(kText, {sql::Param::Blob(bytes)}, [&](const Row& row) {
    Hold one = ReadHold(row);
    // A tombstone was never a request.
    if (!one.tombstone()) hold = std::move(one);
  });
  if (!read.ok()) return Fail{std::move(read).error()};
  return hold;
}

// Parses the text as an id, if it is one.
std::optional<Id> SpelledId(std::string_view text) {
  if (auto id = Id::FromHex(text)) return id;
  const size_t mark = text.find_last_of("_-");
  return Id::FromBase62(mark == std::string_view::npos ? text : text.substr(mark + 1));
}

SqlResult<void> ReadMatches(Connection& db, const std::string& asked, const std::string& text,
                            std::optional<ReceiptRecord>& found) {
  const bool any = asked == kAnyWorkspace;
  std::optional<Hold> spelled;
  if (const auto id = SpelledId(text)) {
    TRY(auto read, any ? FindHold(db, *id) : ReadHoldOf(db, asked, *id));
    spelled = std::move(read);
  }
  if (any && !spelled) return {};
  const std::string workspace = any ? spelled->workspace : asked;
  int64_t matches = spelled ? 1 : 0;
  Id newest = spelled ? spelled->id : Id();
  // Callers choose the text and may use it for every request, so neither query loads all matching
  // rows.
  static const std::string kRows =
      " FROM usage_record WHERE shard = $1 AND workspace = $2"
      " AND client_request_id = $3 AND client_request_id <> '' AND id <> $4";
  static const std::string kNewest = "SELECT id" + kRows + " ORDER BY id DESC LIMIT 1";
  static const std::string kCount = "SELECT count(*) FROM (SELECT 1" + kRows + " LIMIT " +
                                    std::to_string(kMaxMatches) + ") AS matching";
  const std::string own = newest.ToBytes();
  const std::vector<sql::Param> params = {LedgerShard(workspace), workspace, text,
                                          sql::Param::Blob(own)};
  auto read = db.Query(kNewest, params, [&](const Row& row) {
    newest = std::max(newest, Id::FromBytes(row.Bytes(0)).value_or(Id()));
  });
  if (!read.ok()) return read;
  read = db.Query(kCount, params, [&](const Row& row) { matches += row.Int(0); });
  if (!read.ok() || matches == 0) return read;
  matches = std::min(matches, kMaxMatches);
  TRY(auto hold, ReadHoldOf(db, workspace, newest));
  if (!hold) return {};
  found = ReceiptRecord{std::move(*hold), {}, matches};
  const Hold& of = found->hold;
  TRY(auto entries,
      ReadRequestEntries(db, workspace, of.id, of.created_us,
                         of.state == HoldState::kOpen ? INT64_MAX - 1 : of.closed_us));
  found->entries = std::move(entries);
  return {};
}

// The smallest id of this time.
std::string FirstIdAt(int64_t us) {
  return Id::Make(std::clamp<int64_t>(us / 1000, 0, (int64_t{1} << 48) - 1), 0, 0).ToBytes();
}

// No request of this period has an id with an earlier time.
int64_t FirstIdUs(int64_t start_us, int64_t end_us) {
  const int32_t month = UtcMonth(start_us - 1);
  const int64_t next_month_us = UtcMonthStartUs(NextMonth(month));
  const bool has_month_start = next_month_us < end_us;
  return std::min(start_us - kClockSlackUs,
                  has_month_start ? next_month_us - kLateReportUs : start_us);
}

}  // namespace

SqlResult<std::optional<ReceiptRecord>> ReadReceipt(sql::Database& database,
                                                    const std::string& workspace,
                                                    const std::string& text) {
  std::optional<ReceiptRecord> found;
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    found.reset();
    return ReadMatches(db, workspace, text, found);
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return found;
}

SqlResult<std::vector<Hold>> ReadRequests(sql::Database& database, const RequestQuery& query) {
  std::vector<Hold> holds;
  // Ordered by id: its time orders the requests of a shard, and on PostgreSQL selects their
  // partition.
  std::string text = "SELECT " + std::string(kHoldColumns) +
                     " FROM hold WHERE shard = $1 AND workspace = $2 AND state <> 1 AND month <> 0"
                     " AND id >= $3 AND id < $4 AND created_us >= $5 AND created_us < $6";
  const std::string first = FirstIdAt(FirstIdUs(query.start_us, query.end_us));
  const std::string end =
      query.after.empty()
          ? FirstIdAt(std::min(query.end_us, INT64_MAX - kClockSlackUs) + kClockSlackUs)
          : query.after.ToBytes();
  std::vector<sql::Param> params = {
      LedgerShard(query.workspace), query.workspace, sql::Param::Blob(first),
      sql::Param::Blob(end),        query.start_us,  query.end_us};
  const auto where = [&](std::string_view column, sql::Param value) {
    params.push_back(value);
    text += " AND " + std::string(column) + " = $" + std::to_string(params.size());
  };
  if (query.key_id) where("key_id", *query.key_id);
  if (query.model) where("model", *query.model);
  if (query.outcome) where("outcome", static_cast<int64_t>(*query.outcome));
  if (query.client_request_id) {
    where("client_request_id", *query.client_request_id);
    // Uses the index of usage records; holds have none for this.
    text +=
        " AND id IN (SELECT id FROM usage_record WHERE shard = $1 AND workspace = $2"
        " AND client_request_id = $" +
        std::to_string(params.size()) + " AND client_request_id <> '')";
  }
  params.emplace_back(query.limit + 1);
  text += " ORDER BY id DESC LIMIT $" + std::to_string(params.size());
  auto done = database.Transact(sql::TxMode::kRead, [&](Connection& db) {
    holds.clear();
    return db.Query(text, params, [&](const Row& row) { holds.push_back(ReadHold(row)); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return holds;
}

}  // namespace tollgate::billing
