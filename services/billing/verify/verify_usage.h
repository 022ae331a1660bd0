// Recomputes the roll-ups and the months of keys from the usage records, key by key.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/verify/verify_findings.h"
#include "services/billing/verify/verify_state.h"

namespace tollgate::billing {

class UsageCheck {
 public:
  // quota_held: amounts that open holds of keys with a quota reserve, by MovedKey.
  UsageCheck(sql::Connection& db, const WorkspaceState& state, Findings& findings,
             const std::map<std::string, int64_t>& quota_held);

  // on_page is called after each page of records.
  sql::SqlResult<void> Run(const std::function<void()>& on_page = {});
  // Number of records admitted since the cut.
  int64_t records() const { return records_; }

 private:
  // Columns after the period of a roll-up, in order.
  static constexpr int kFigures = 9;
  struct Figures {
    int64_t values[kFigures] = {};
  };
  // One roll-up table: sums of the current period by model, and finished sums.
  struct RollUp {
    const char* table;
    int64_t period = -1;
    std::map<std::string, Figures> models;
    // Finished sums that are not compared yet, by key, model and period.
    std::map<std::tuple<std::string, std::string, int64_t>, Figures> finished;
    int64_t rows = 0;
    int64_t first_period = 0;  // earlier ones are archived
    int64_t period_us = 0;
  };

  sql::SqlResult<bool> Page();
  void AddRecord(const sql::Row& row);
  void FinishPeriod(RollUp& rollup);
  sql::SqlResult<void> FinishKey();
  sql::SqlResult<void> Compare(RollUp& rollup);
  sql::SqlResult<void> CompareCount(const RollUp& rollup);
  sql::SqlResult<void> CheckKeyMonths();
  sql::SqlResult<void> CheckIdleKeyMonths();
  void CheckKeyMonth(const sql::Row& row, int64_t spent);

  sql::Connection& db_;
  const WorkspaceState& state_;
  Findings& findings_;
  const std::map<std::string, int64_t>& quota_held_;
  const int32_t shard_;
  int64_t records_ = 0;
  // The newest record read.
  std::string key_;
  int64_t admitted_us_ = 0;
  std::string id_;
  bool any_ = false;
  std::map<int64_t, int64_t> key_months_;  // spend of the key by month
  std::vector<std::pair<std::string, std::map<int64_t, int64_t>>> finished_keys_;
  RollUp quarters_;
  RollUp days_;
};

}  // namespace tollgate::billing
