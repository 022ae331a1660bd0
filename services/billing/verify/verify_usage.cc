#include "services/billing/verify/verify_usage.h"

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/storage/schema.h"
#include "services/billing/verify/verify_digests.h"
#include "services/billing/verify/verify_figures.h"

namespace tollgate::billing {

using sql::Param;
using sql::Row;
using sql::SqlResult;

UsageCheck::UsageCheck(sql::Connection& db, const WorkspaceState& state, Findings& findings,
                       const std::map<std::string, int64_t>& quota_held)
    : db_(db),
      state_(state),
      findings_(findings),
      quota_held_(quota_held),
      shard_(LedgerShard(state.workspace)) {
  quarters_.table = "usage_quarter";
  quarters_.period_us = kQuarterUs;
  quarters_.first_period = state.cut_us / kQuarterUs;
  days_.table = "usage_day";
  days_.period_us = 86'400LL * 1'000'000;
  days_.first_period = state.cut_us / days_.period_us;
}

SqlResult<void> UsageCheck::Run(const std::function<void()>& on_page) {
  for (bool more = true; more;) {
    TRY(auto page, Page());
    more = page;
    if (!more && any_) {
      TRY(FinishKey());
    }
    for (RollUp* rollup : {&quarters_, &days_}) {
      if (more && rollup->finished.size() < kVerifyCompare) continue;
      TRY(Compare(*rollup));
    }
    TRY(CheckKeyMonths());
    if (on_page) on_page();
  }
  TRY(CompareCount(quarters_));
  TRY(CompareCount(days_));
  TRY(CheckIdleKeyMonths());
  return CheckArchived(db_, state_, findings_);
}

SqlResult<bool> UsageCheck::Page() {
  static const std::string kText =
      "SELECT key_id, admitted_us, id, model, prompt, cached, cache_write, completion, reasoning,"
      " charged, overrun, month FROM usage_record WHERE shard = $1 AND workspace = $2"
      " AND (key_id, admitted_us, id) > ($3, $4, $5) ORDER BY key_id, admitted_us, id LIMIT " +
      std::to_string(kVerifyPage);
  int64_t seen = 0;
  SqlResult<void> finished;
  const std::string after_key = key_;
  const std::string after_id = id_;
  auto read =
      db_.Query(kText, {shard_, state_.workspace, after_key, admitted_us_, Param::Blob(after_id)},
                [&](const Row& row) {
                  ++seen;
                  if (any_ && row.Bytes(0) != key_ && finished.ok()) finished = FinishKey();
                  key_ = row.Text(0);
                  admitted_us_ = row.Int(1);
                  id_ = row.Text(2);
                  any_ = true;
                  // The archive's roll-ups contain requests from before the cut that were closed
                  // after it.
                  if (admitted_us_ < state_.cut_us) return;
                  ++records_;
                  AddRecord(row);
                });
  if (!read.ok()) return Fail{std::move(read).error()};
  if (!finished.ok()) return Fail{std::move(finished).error()};
  return seen == kVerifyPage;
}

void UsageCheck::AddRecord(const Row& row) {
  key_months_[row.Int(11)] += row.Int(9);
  const bool generated = row.Int(4) + row.Int(7) > 0;
  const int64_t values[kFigures] = {generated ? 1 : 0, generated ? 0 : 1, row.Int(4),
                                    row.Int(5),        row.Int(6),        row.Int(7),
                                    row.Int(8),        row.Int(9),        row.Int(10)};
  for (RollUp* rollup : {&quarters_, &days_}) {
    const int64_t period = admitted_us_ / rollup->period_us;
    if (period != rollup->period) FinishPeriod(*rollup);
    rollup->period = period;
    Figures& sums = rollup->models[row.Text(3)];
    for (int i = 0; i < kFigures; ++i) sums.values[i] += values[i];
  }
}

void UsageCheck::FinishPeriod(RollUp& rollup) {
  for (auto& [model, sums] : rollup.models) {
    rollup.finished.emplace(std::make_tuple(key_, model, rollup.period), sums);
    ++rollup.rows;
  }
  rollup.models.clear();
}

SqlResult<void> UsageCheck::FinishKey() {
  FinishPeriod(quarters_);
  FinishPeriod(days_);
  finished_keys_.emplace_back(key_, std::move(key_months_));
  key_months_.clear();
  return {};
}

SqlResult<void> UsageCheck::Compare(RollUp& rollup) {
  static constexpr sql::Connection::KeyColumn kKey[] = {{"shard", Param::Kind::kInt},
                                                        {"workspace", Param::Kind::kText},
                                                        {"key_id", Param::Kind::kText},
                                                        {"model", Param::Kind::kText},
                                                        {"period", Param::Kind::kInt}};
  if (rollup.finished.empty()) return {};
  std::vector<Param> keys;
  for (const auto& [row, sums] : rollup.finished) {
    const auto& [key, model, period] = row;
    keys.insert(keys.end(), {shard_, state_.workspace, key, model, period});
  }
  const std::string table = rollup.table;
  const auto name = [&](const std::string& key, const std::string& model, int64_t period) {
    return table + " of key " + key + ", model " + model + ", period " + std::to_string(period);
  };
  auto read = db_.QueryKeys(
      "SELECT " + std::string(kRollUpColumns) + " FROM " + table + " WHERE", kKey, keys, "",
      [&](const Row& row) {
        const std::string key = row.Text(2);
        const std::string model = row.Text(3);
        const auto found = rollup.finished.find(std::make_tuple(key, model, row.Int(4)));
        if (found == rollup.finished.end()) return;
        for (int i = 0; i < kFigures; ++i) {
          const int64_t stored = row.Int(5 + i);
          if (stored == found->second.values[i]) continue;
          findings_.Report(name(key, model, row.Int(4)) + ": " + kFigureNames[i] + " is " +
                           std::to_string(stored) + ", by the usage records " +
                           std::to_string(found->second.values[i]));
        }
        rollup.finished.erase(found);
      });
  if (!read.ok()) return read;
  for (const auto& [row, sums] : rollup.finished) {
    const auto& [key, model, period] = row;
    findings_.Report(name(key, model, period) + " is missing");
  }
  rollup.finished.clear();
  return {};
}

SqlResult<void> UsageCheck::CompareCount(const RollUp& rollup) {
  const std::string table = rollup.table;
  int64_t stored = 0;
  auto read = db_.Query(
      "SELECT count(*) FROM " + table + " WHERE shard = $1 AND workspace = $2 AND period >= $3",
      {shard_, state_.workspace, rollup.first_period},
      [&](const Row& row) { stored = row.Int(0); });
  if (!read.ok() || stored <= rollup.rows) return read;
  const std::string us = std::to_string(rollup.period_us);
  return db_.Query(
      "SELECT key_id, model, period FROM " + table +
          " r WHERE shard = $1 AND workspace = $2 AND period >= $3 AND NOT EXISTS (SELECT 1 FROM"
          " usage_record u WHERE u.shard = r.shard AND u.workspace = r.workspace"
          " AND u.key_id = r.key_id AND u.model = r.model AND u.admitted_us >= r.period * " +
          us + " AND u.admitted_us < (r.period + 1) * " + us + ") LIMIT 10",
      {shard_, state_.workspace, rollup.first_period}, [&](const Row& row) {
        findings_.Report(table + " of key " + row.Text(0) + ", model " + row.Text(1) + ", period " +
                         std::to_string(row.Int(2)) + " has no usage record");
      });
}

void UsageCheck::CheckKeyMonth(const Row& row, int64_t spent) {
  const std::string key = row.Text(0);
  const int64_t month = row.Int(1);
  const std::string name = "key " + key + " in month " + std::to_string(month);
  const auto moved = state_.moved.find(MovedKey(key, month));
  const auto held = quota_held_.find(MovedKey(key, month));
  // A late correction may count towards another month than its request.
  if (moved != state_.moved.end()) spent += moved->second;
  findings_.Expect(row.Int(2), spent, name + " (key_month) spent");
  findings_.Expect(row.Int(3), held == quota_held_.end() ? 0 : held->second,
                   name + " (key_month) held");
}

SqlResult<void> UsageCheck::CheckKeyMonths() {
  static const std::string kText =
      "SELECT key_id, month, spent, held FROM key_month"
      " WHERE shard = $1 AND workspace = $2 AND key_id = $3 AND month >= $4";
  const int64_t first = state_.cut_us > 0 ? UtcMonth(state_.cut_us) : 0;
  for (const auto& [key, months] : finished_keys_) {
    auto read = db_.Query(kText, {shard_, state_.workspace, key, first}, [&](const Row& row) {
      const auto spent = months.find(row.Int(1));
      CheckKeyMonth(row, spent == months.end() ? 0 : spent->second);
    });
    if (!read.ok()) return read;
  }
  finished_keys_.clear();
  return {};
}

SqlResult<void> UsageCheck::CheckIdleKeyMonths() {
  static const std::string kText =
      "SELECT key_id, month, spent, held FROM key_month k WHERE shard = $1 AND workspace = $2"
      " AND month >= $3 AND NOT EXISTS (SELECT 1 FROM usage_record u WHERE u.shard = k.shard"
      " AND u.workspace = k.workspace AND u.key_id = k.key_id)";
  const int64_t first = state_.cut_us > 0 ? UtcMonth(state_.cut_us) : 0;
  return db_.Query(kText, {shard_, state_.workspace, first},
                   [&](const Row& row) { CheckKeyMonth(row, 0); });
}

}  // namespace tollgate::billing
