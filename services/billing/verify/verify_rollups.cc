#include "services/billing/verify/verify_rollups.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "services/billing/storage/schema.h"
#include "services/billing/verify/verify_figures.h"
#include "services/billing/verify/verify_rollup_start.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Param;
using sql::Row;
using sql::SqlResult;

constexpr size_t kFigureCount = 9;

using Figures = std::array<int64_t, kFigureCount>;
using Period = RollUpPeriod;

// What entries added to the posted credit and to what the workspace owes.
struct Moved {
  int64_t posted = 0;
  int64_t receivable = 0;
};

class RollUpCheck {
 public:
  RollUpCheck(Connection& db, const WorkspaceState& state, Findings& findings,
              const std::function<void()>& on_page)
      : db_(db),
        state_(state),
        findings_(findings),
        on_page_(on_page),
        shard_(LedgerShard(state.workspace)) {}

  SqlResult<void> Run() {
    TRY(auto start, ReadRollUpStart(db_, state_, findings_));
    if (!start) return {};
    start_ = std::move(*start);
    sequence_ = start_.sequence;
    TRY(ReadEntries());
    TRY(CompareStatements());
    TRY(CompareUsage("usage_quarter", "workspace_quarter", kQuarterUs));
    TRY(CompareUsage("usage_day", "workspace_day", kDayUs));
    for (const char* table : {"key_spend_day", "key_spend_month"}) {
      int64_t stored = 0;
      TRY(db_.Query(
          "SELECT count(*) FROM " + std::string(table) + " WHERE shard = $1 AND workspace = $2",
          {shard_, state_.workspace}, [&](const Row& row) { stored = row.Int(0); }));
      if (stored == matched_[table]) continue;
      findings_.Report(std::string(table) + " has " + std::to_string(stored - matched_[table]) +
                       " rows of which no usage is known");
    }
    return {};
  }

 private:
  SqlResult<void> ReadEntries() {
    static const std::string kText =
        "SELECT e.sequence, e.kind, e.request, e.debit, e.credit, e.amount, e.at_us, u.key_id,"
        " u.model, u.admitted_us, u.state, u.prompt, u.cached, u.cache_write, u.completion,"
        " u.reasoning, u.charged, u.overrun FROM entry e LEFT JOIN usage_record u"
        " ON u.shard = e.shard AND u.id = e.request WHERE e.shard = $1 AND e.workspace = $2"
        " AND e.sequence > $3 ORDER BY e.sequence LIMIT " +
        std::to_string(kVerifyPage);
    for (int seen = kVerifyPage; seen == kVerifyPage;) {
      seen = 0;
      const int64_t after = sequence_;
      auto read = db_.Query(kText, {shard_, state_.workspace, after}, [&](const Row& row) {
        ++seen;
        sequence_ = row.Int(0);
        AddEntry(row);
      });
      if (!read.ok()) return read;
      on_page_();
    }
    return {};
  }

  static int64_t Posted(int64_t account, int64_t amount) {
    const auto is = [account](Account one) { return account == static_cast<int64_t>(one); };
    return is(Account::kPaid) || is(Account::kGranted) ? amount : 0;
  }

  static int64_t Owed(int64_t account, int64_t amount) {
    return account == static_cast<int64_t>(Account::kReceivable) ? amount : 0;
  }

  void AddEntry(const Row& row) {
    const auto kind = static_cast<EntryKind>(row.Int(1));
    const int64_t posted = Posted(row.Int(4), row.Int(5)) - Posted(row.Int(3), row.Int(5));
    if (row.Int(0) > start_.cut) return AddFresh(row, kind, posted);
    const int64_t month = std::max(UtcMonth(row.Int(6)), start_.closes.FirstMonth(row.Int(0)));
    const int64_t receivable = row.Int(0) > start_.receivables
                                   ? 0
                                   : Owed(row.Int(3), row.Int(5)) - Owed(row.Int(4), row.Int(5));
    if (posted == 0 && receivable == 0) return;
    Moved& moved = months_[{month, row.Int(1)}];
    moved.posted += posted;
    moved.receivable += receivable;
    if (kind != EntryKind::kCharge && kind != EntryKind::kLateCorrection) return;
    auto& [requests, amount] = usage_[{month, row.Text(7), row.Text(8)}];
    amount -= posted;
    if (posted > 0) return;
    // Finds the first charge of a request. The two entries of a charge, for paid and granted
    // credit, are adjacent; only a corrected request can have another charge.
    const std::string request = row.Text(2);
    const bool again = request == last_charged_ || start_.charged.contains(request);
    if (!again) ++requests;
    last_charged_ = request;
    if (row.Int(10) == static_cast<int64_t>(HoldState::kCorrected)) start_.charged.insert(request);
  }

  // Adds an entry after the cut: usage records and roll-ups by key contain it, these roll-ups do
  // not.
  void AddFresh(const Row& row, EntryKind kind, int64_t posted) {
    fresh_posted_ += posted;
    const bool correction = kind == EntryKind::kLateCorrection;
    if (!IsTerminal(kind) && kind != EntryKind::kCharge && !correction) return;
    const int64_t admitted_us = row.Int(9);
    if (admitted_us < start_.base_us) return;
    const Period quarter(admitted_us / kQuarterUs, row.Text(8));
    const Period day(admitted_us / kDayUs, row.Text(8));
    if (IsTerminal(kind)) {
      fresh_ended_.insert(row.Text(2));
      const bool generated = row.Int(11) + row.Int(14) > 0;
      const Figures sums = {generated ? 1 : 0, generated ? 0 : 1, row.Int(11),
                            row.Int(12),       row.Int(13),       row.Int(14),
                            row.Int(15),       row.Int(16),       row.Int(17)};
      for (Figures* fresh : {&fresh_quarters_[quarter], &fresh_days_[day]}) {
        for (size_t i = 0; i < kFigureCount; ++i) (*fresh)[i] += sums[i];
      }
      return;
    }
    if (correction && !fresh_ended_.contains(row.Text(2))) {
      start_.unknown_quarters.insert(quarter);
      start_.unknown_days.insert(day);
    }
    fresh_spent_[{admitted_us / kDayUs, row.Text(7)}] -= posted;
  }

  // Takes the expected sums of the month.
  void CompareMonth(int64_t month, int64_t kind, const Moved& stored) {
    const auto taken = months_.extract({month, kind});
    if (month < start_.first_month) return;
    const Moved expected = taken.empty() ? Moved() : taken.mapped();
    const std::string name =
        "statement_month of " + std::to_string(month) + ", kind " + std::to_string(kind);
    findings_.Expect(stored.posted, expected.posted, name);
    findings_.Expect(stored.receivable, expected.receivable, name + ": receivable");
  }

  SqlResult<void> CompareStatements() {
    int64_t sum = 0;
    auto read = db_.Query(
        "SELECT month, kind, amount, receivable FROM statement_month WHERE shard = $1"
        " AND workspace = $2",
        {shard_, state_.workspace}, [&](const Row& row) {
          sum += row.Int(2);
          if (row.Int(0) == 0) return;
          CompareMonth(row.Int(0), row.Int(1), {row.Int(2), row.Int(3)});
        });
    if (!read.ok()) return read;
    while (!months_.empty()) {
      const auto [month, kind] = months_.begin()->first;
      CompareMonth(month, kind, {});
    }
    findings_.Expect(sum,
                     state_.sums[static_cast<size_t>(Account::kPaid)] +
                         state_.sums[static_cast<size_t>(Account::kGranted)] - fresh_posted_,
                     "the sum of statement_month");
    return CompareStatementUsage();
  }

  SqlResult<void> CompareStatementUsage() {
    const auto compare = [&](int64_t month, const std::string& key, const std::string& model,
                             int64_t requests, int64_t amount) {
      const auto at = usage_.find({month, key, model});
      const auto expected = at == usage_.end() ? std::pair<int64_t, int64_t>() : at->second;
      const std::string name =
          "statement_usage of " + std::to_string(month) + ", key " + key + ", model " + model;
      findings_.Expect(requests, expected.first, name + ": requests");
      findings_.Expect(amount, expected.second, name + ": amount");
      if (at != usage_.end()) usage_.erase(at);
    };
    TRY(db_.Query(
        "SELECT month, key_id, model, requests, amount FROM statement_usage WHERE shard = $1"
        " AND workspace = $2 AND month >= $3",
        {shard_, state_.workspace, start_.first_month}, [&](const Row& row) {
          compare(row.Int(0), row.Text(1), row.Text(2), row.Int(3), row.Int(4));
        }));
    while (!usage_.empty()) {
      const auto [month, key, model] = usage_.begin()->first;
      if (month < start_.first_month) {
        usage_.erase(usage_.begin());
      } else {
        compare(month, key, model, 0, 0);
      }
    }
    return {};
  }

  // by_key: the roll-up by key whose sums table must have.
  SqlResult<void> CompareUsage(const std::string& by_key, const std::string& table,
                               int64_t period_us) {
    const bool days = period_us == kDayUs;
    std::map<Period, Figures> sums;
    TRY(SumKeys(by_key, days, sums));
    for (const auto& [period, fresh] : days ? fresh_days_ : fresh_quarters_) {
      for (size_t i = 0; i < kFigureCount; ++i) sums[period][i] -= fresh[i];
    }
    const auto& unknown = days ? start_.unknown_days : start_.unknown_quarters;
    const auto compare = [&](const Period& period, const Figures& stored) {
      const auto at = sums.find(period);
      const Figures expected = at == sums.end() ? Figures() : at->second;
      if (at != sums.end()) sums.erase(at);
      if (unknown.contains(period)) return;
      for (size_t i = 0; i < kFigureCount; ++i) {
        if (stored[i] == expected[i]) continue;
        findings_.Report(table + " of model " + period.second + ", period " +
                         std::to_string(period.first) + ": " + kFigureNames[i] + " is " +
                         std::to_string(stored[i]) + ", by " + by_key + " " +
                         std::to_string(expected[i]));
      }
    };
    auto read = db_.Query(
        "SELECT period, model, requests, free_requests, prompt, cached, cache_write, completion,"
        " reasoning, charged, overrun FROM " +
            table + " WHERE shard = $1 AND workspace = $2 AND period >= $3",
        {shard_, state_.workspace, FirstPeriod(days)}, [&](const Row& row) {
          Figures stored;
          for (size_t i = 0; i < kFigureCount; ++i) stored[i] = row.Int(static_cast<int>(2 + i));
          compare({row.Int(0), row.Text(1)}, stored);
        });
    if (!read.ok()) return read;
    while (!sums.empty()) compare(Period(sums.begin()->first), Figures());
    return {};
  }

  // Quarters of archived months are removed; before that nothing reads them.
  int64_t FirstPeriod(bool days) const { return days ? 0 : state_.cut_us / kQuarterUs; }

  SqlResult<void> SumKeys(const std::string& by_key, bool days, std::map<Period, Figures>& sums) {
    const std::string text =
        "SELECT key_id, model, period, requests, free_requests, prompt, cached, cache_write,"
        " completion, reasoning, charged, overrun FROM " +
        by_key +
        " WHERE shard = $1 AND workspace = $2 AND (key_id, model, period) > ($3, $4, $5)"
        " AND period >= $6 ORDER BY key_id, model, period LIMIT " +
        std::to_string(kVerifyPage);
    std::string key;
    std::string model;
    int64_t period = -1;
    for (int seen = kVerifyPage; seen == kVerifyPage;) {
      seen = 0;
      const std::string after_key = key;
      const std::string after_model = model;
      auto read = db_.Query(
          text, {shard_, state_.workspace, after_key, after_model, period, FirstPeriod(days)},
          [&](const Row& row) {
            ++seen;
            key = row.Text(0);
            model = row.Text(1);
            period = row.Int(2);
            Figures& sum = sums[{period, model}];
            for (size_t i = 0; i < kFigureCount; ++i) {
              sum[i] += row.Int(static_cast<int>(3 + i));
            }
            if (!days) return;
            spent_days_[{period, key}] += row.Int(10);
            spent_months_[{UtcMonth(period * kDayUs), key}] += row.Int(10);
          });
      if (!read.ok()) return read;
      if (days) {
        TRY(CompareSpends(seen < kVerifyPage ? "" : key));
      }
      on_page_();
    }
    return {};
  }

  // Compares all keys except the last one, whose rows may continue on the next page.
  SqlResult<void> CompareSpends(const std::string& last_key) {
    if (!last_key.empty() && spent_days_.size() < kVerifyCompare) return {};
    for (const auto& [table, spends, days] :
         {std::tuple("key_spend_day", &spent_days_, true),
          std::tuple("key_spend_month", &spent_months_, false)}) {
      std::map<Period, int64_t> finished;
      for (auto at = spends->begin(); at != spends->end();) {
        if (at->first.second == last_key) {
          ++at;
          continue;
        }
        finished.insert(*at);
        at = spends->erase(at);
      }
      for (const auto& [period, fresh] : fresh_spent_) {
        const auto at =
            finished.find(days ? period : Period(UtcMonth(period.first * kDayUs), period.second));
        if (at != finished.end()) at->second -= fresh;
      }
      TRY(CompareSpends(table, std::move(finished)));
    }
    return {};
  }

  SqlResult<void> CompareSpends(const std::string& table, std::map<Period, int64_t> finished) {
    static constexpr Connection::KeyColumn kKey[] = {{"shard", Param::Kind::kInt},
                                                     {"workspace", Param::Kind::kText},
                                                     {"period", Param::Kind::kInt},
                                                     {"key_id", Param::Kind::kText}};
    std::vector<Param> keys;
    for (const auto& [row, charged] : finished) {
      keys.insert(keys.end(), {shard_, state_.workspace, row.first, row.second});
    }
    const auto name = [&](const Period& row) {
      return table + " of key " + row.second + ", period " + std::to_string(row.first);
    };
    std::set<Period> found;
    auto read = db_.QueryKeys("SELECT period, key_id, charged FROM " + table + " WHERE", kKey, keys,
                              "", [&](const Row& row) {
                                const Period period(row.Int(0), row.Text(1));
                                const auto at = finished.find(period);
                                if (at == finished.end()) return;
                                ++matched_[table];
                                found.insert(period);
                                findings_.Expect(row.Int(2), at->second, name(period));
                              });
    if (!read.ok()) return read;
    for (const auto& [period, charged] : finished) {
      if (!found.contains(period)) findings_.Expect(0, charged, name(period));
    }
    return {};
  }

  Connection& db_;
  const WorkspaceState& state_;
  Findings& findings_;
  const std::function<void()>& on_page_;
  const int32_t shard_;
  RollUpStart start_;
  int64_t sequence_ = 0;  // newest entry read
  // Computed from the entries up to the cut.
  std::map<std::pair<int64_t, int64_t>, Moved> months_;  // by month and kind
  // Requests and amount, by month, key and model.
  std::map<std::tuple<int64_t, std::string, std::string>, std::pair<int64_t, int64_t>> usage_;
  std::string last_charged_;
  // Computed from the entries after the cut.
  int64_t fresh_posted_ = 0;
  std::set<std::string> fresh_ended_;
  std::map<Period, Figures> fresh_quarters_, fresh_days_;
  std::map<Period, int64_t> fresh_spent_;  // by day and key
  // From the roll-ups by key; not compared yet.
  std::map<Period, int64_t> spent_days_, spent_months_;
  std::map<std::string, int64_t> matched_;  // rows, by table
};

}  // namespace

SqlResult<void> CheckRollUps(Connection& db, const WorkspaceState& state, Findings& findings,
                             const std::function<void()>& on_page) {
  return RollUpCheck(db, state, findings, on_page).Run();
}

}  // namespace tollgate::billing
