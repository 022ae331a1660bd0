#include "services/billing/reports/rollup_changes.h"

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Param;
using sql::Row;
using sql::SqlResult;

bool IsPostedAccount(int64_t account) {
  return account == static_cast<int64_t>(Account::kPaid) ||
         account == static_cast<int64_t>(Account::kGranted);
}

bool IsReceivable(int64_t account) { return account == static_cast<int64_t>(Account::kReceivable); }

class ChangeReader {
 public:
  ChangeReader(Connection& db, const std::string& workspace)
      : db_(db), workspace_(workspace), shard_(LedgerShard(workspace)) {}

  SqlResult<RollUpChanges> Read(int64_t after, int limit) {
    TRY(ReadEntries(after, limit));
    TRY(auto closes, ReadStatementCloses(db_, workspace_));
    changes_.closes = std::move(closes);
    for (const Line& line : lines_) Add(line);
    TRY(ReadRecords());
    TRY(AddStatementUsage());
    for (auto& [id, request] : requests_) changes_.requests.push_back(std::move(request.change));
    return std::move(changes_);
  }

 private:
  struct Line {
    int64_t sequence = 0;
    EntryKind kind = EntryKind::kHold;
    std::string request;
    int64_t posted = 0;      // added to the posted credit
    int64_t receivable = 0;  // added to what the workspace owes
    int64_t at_us = 0;
  };
  struct Request {
    RequestChange change;
    bool found = false;  // whether its usage record was found
    bool expired = false;
    bool charged_at_end = false;  // whether one of the entries charged it at its end
    int64_t ended_us = 0;
    // Month of the first charge among the entries; 0: none.
    int32_t charge_month = 0;
    std::map<int32_t, int64_t> months;  // charged amount by month of the entry
  };

  SqlResult<void> ReadEntries(int64_t after, int limit) {
    changes_.last = after;
    auto read = db_.Query(
        "SELECT sequence, kind, request, debit, credit, amount, at_us FROM entry WHERE shard = $1"
        " AND workspace = $2 AND sequence > $3 ORDER BY sequence LIMIT $4",
        {shard_, workspace_, after, limit}, [&](const Row& row) {
          Line line;
          line.sequence = row.Int(0);
          line.kind = static_cast<EntryKind>(row.Int(1));
          line.request = row.Text(2);
          line.posted = (IsPostedAccount(row.Int(4)) ? row.Int(5) : 0) -
                        (IsPostedAccount(row.Int(3)) ? row.Int(5) : 0);
          line.receivable = (IsReceivable(row.Int(3)) ? row.Int(5) : 0) -
                            (IsReceivable(row.Int(4)) ? row.Int(5) : 0);
          line.at_us = row.Int(6);
          lines_.push_back(std::move(line));
        });
    if (!read.ok()) return read;
    changes_.more = lines_.size() == static_cast<size_t>(limit);
    changes_.gap = !lines_.empty() && lines_.front().sequence != after + 1;
    if (changes_.more) DropBegunOperation();
    if (!lines_.empty()) changes_.last = lines_.back().sequence;
    return {};
  }

  // A request ends with several entries, so the last operation may be incomplete.
  void DropBegunOperation() {
    const std::string last = lines_.back().request;
    while (lines_.size() > 1 && lines_.back().request == last && IsEnd(lines_.back().kind)) {
      lines_.pop_back();
    }
  }
  static bool IsEnd(EntryKind kind) {
    return kind >= EntryKind::kSettle && kind <= EntryKind::kLateCorrection;
  }

  int32_t MonthOf(int64_t at_us) {
    const int32_t day = UtcDay(at_us);
    if (day != day_) month_ = UtcMonth(at_us);
    day_ = day;
    return month_;
  }

  void Add(const Line& line) {
    const int32_t month = std::max(MonthOf(line.at_us), changes_.closes.FirstMonth(line.sequence));
    if (const Movement moved{line.posted, line.receivable}; moved != Movement()) {
      changes_.movements[{month, static_cast<int64_t>(line.kind)}] += moved;
    }
    const bool charge = line.kind == EntryKind::kCharge;
    const bool correction = line.kind == EntryKind::kLateCorrection;
    if (!IsTerminal(line.kind) && !charge && !correction) return;
    Request& request = requests_[line.request];
    if (IsTerminal(line.kind)) {
      request.change.ended = true;
      request.ended_us = line.at_us;
      request.expired = line.kind == EntryKind::kExpireCharge;
      return;
    }
    request.change.corrected |= correction;
    request.charged_at_end |= charge && line.posted != 0;
    request.change.charged_nano_usd -= line.posted;
    if (line.posted != 0) request.months[month] -= line.posted;
    if (line.posted < 0 && request.charge_month == 0) request.charge_month = month;
  }

  SqlResult<void> ReadRecords() {
    std::vector<Param> keys;
    for (const auto& [id, request] : requests_) keys.insert(keys.end(), {shard_, Param::Blob(id)});
    static constexpr Connection::KeyColumn kKey[] = {{"shard", Param::Kind::kInt},
                                                     {"id", Param::Kind::kBlob}};
    size_t found = 0;
    auto read = db_.QueryKeys(
        "SELECT id, key_id, model, admitted_us, prompt, cached, cache_write, completion, reasoning,"
        " charged, overrun FROM usage_record WHERE",
        kKey, keys, "", [&](const Row& row) {
          const auto at = requests_.find(row.Text(0));
          if (at == requests_.end()) return;
          ++found;
          RequestChange& change = at->second.change;
          change.key_id = row.Text(1);
          change.model = row.Text(2);
          change.admitted_us = row.Int(3);
          change.sums.usage = {row.Int(4), row.Int(5), row.Int(6), row.Int(7), row.Int(8)};
          change.sums.charged_nano_usd = row.Int(9);
          change.sums.overrun_nano_usd = row.Int(10);
          const bool generated = row.Int(4) + row.Int(7) > 0;
          (generated ? change.sums.requests : change.sums.free_requests) = 1;
        });
    if (!read.ok() || found == requests_.size()) return read;
    return Fail{sql::SqlError{sql::ErrorKind::kOther,
                              "requests of " + workspace_ +
                                  " have entries and no usage record; run tollgate verify-ledger"}};
  }

  SqlResult<void> AddStatementUsage() {
    for (const auto& [id, request] : requests_) {
      bool first = request.charge_month != 0;
      if (first && !request.charged_at_end) {
        // Charged by a correction: it counts as the first charge if the request was not charged
        // when it expired.
        TRY(db_.Query(
            "SELECT 1 FROM expired_charge WHERE shard = $1 AND workspace = $2 AND id = $3",
            {shard_, workspace_, Param::Blob(id)}, [&](const Row&) { first = false; }));
      }
      for (const auto& [month, amount] : request.months) {
        StatementUsage& line = changes_.usage[{month, request.change.key_id, request.change.model}];
        line.amount_nano_usd += amount;
        if (first && month == request.charge_month) ++line.requests;
      }
      if (request.expired && request.charged_at_end) {
        changes_.expired.emplace_back(id, request.ended_us);
      }
    }
    return {};
  }

  Connection& db_;
  const std::string& workspace_;
  const int32_t shard_;
  RollUpChanges changes_;
  std::vector<Line> lines_;
  std::map<std::string, Request> requests_;  // by request id
  int32_t day_ = -1;
  int32_t month_ = 0;
};

}  // namespace

SqlResult<std::optional<RollUpCut>> ReadRollUpCut(Connection& db, const std::string& workspace) {
  std::optional<RollUpCut> cut;
  TRY(db.Query(
      "SELECT sequence, base_us, receivables FROM rollup_cut WHERE shard = $1 AND workspace = $2",
      {LedgerShard(workspace), workspace},
      [&](const Row& row) { cut = RollUpCut{row.Int(0), row.Int(1), row.Int(2)}; }));
  return cut;
}

SqlResult<RollUpChanges> ReadRollUpChanges(Connection& db, const std::string& workspace,
                                           int64_t after, int limit) {
  return ChangeReader(db, workspace).Read(after, limit);
}

SqlResult<Movements> ReadLateReceivables(Connection& db, const std::string& workspace,
                                         const RollUpCut& cut) {
  Movements movements;
  if (cut.receivables >= cut.sequence) return movements;
  const int32_t shard = LedgerShard(workspace);
  bool charged_back = false;  // nothing is owed without a chargeback
  TRY(db.Query("SELECT 1 FROM command WHERE shard = $1 AND workspace = $2 AND kind = $3 LIMIT 1",
               {shard, workspace, static_cast<int>(CommandKind::kChargeback)},
               [&](const Row&) { charged_back = true; }));
  if (!charged_back) return movements;
  TRY(auto closes, ReadStatementCloses(db, workspace));
  // Archived entries may still be there if the removal was interrupted.
  TRY(db.Query(
      "SELECT e.kind, e.debit, e.amount, e.at_us, e.sequence FROM entry e LEFT JOIN "
      "archive_workspace a"
      " ON a.shard = e.shard AND a.workspace = e.workspace WHERE e.shard = $1 AND e.workspace = $2"
      " AND e.sequence > $3 AND e.sequence <= $4 AND e.sequence > coalesce(a.sequence, 0)"
      " AND (e.debit = $5 OR e.credit = $5)",
      {shard, workspace, cut.receivables, cut.sequence, static_cast<int>(Account::kReceivable)},
      [&](const Row& row) {
        const int32_t month = std::max(UtcMonth(row.Int(3)), closes.FirstMonth(row.Int(4)));
        movements[{month, row.Int(0)}].receivable_nano_usd +=
            IsReceivable(row.Int(1)) ? row.Int(2) : -row.Int(2);
      }));
  return movements;
}

SqlResult<std::optional<FreshChanges>> ReadFreshChanges(Connection& db,
                                                        const std::string& workspace) {
  TRY(auto cut, ReadRollUpCut(db, workspace));
  if (!cut) return std::optional<FreshChanges>();
  int64_t newest = 0;
  bool stale = false;
  TRY(db.Query("SELECT 1 FROM rollup_stale WHERE shard = $1 AND workspace = $2 LIMIT 1",
               {LedgerShard(workspace), workspace}, [&](const Row&) { stale = true; }));
  if (stale) return std::optional<FreshChanges>();
  TRY(db.Query("SELECT sequence FROM wallet WHERE shard = $1 AND workspace = $2",
               {LedgerShard(workspace), workspace}, [&](const Row& row) { newest = row.Int(0); }));
  FreshChanges fresh;
  fresh.cut = *cut;
  fresh.changes.last = fresh.cut.sequence;
  if (newest - fresh.cut.sequence > kMostFreshEntries) return std::optional<FreshChanges>();
  if (newest > fresh.cut.sequence) {
    TRY(auto changes, ReadRollUpChanges(db, workspace, fresh.cut.sequence, kMostFreshEntries + 1));
    if (changes.gap) return std::optional<FreshChanges>();
    fresh.changes = std::move(changes);
  }
  return std::optional<FreshChanges>(std::move(fresh));
}

}  // namespace tollgate::billing
