#include "services/billing/alerts/alert_store.h"

#include <algorithm>
#include <charconv>

#include "common/base/clock.h"
#include "common/base/ledger_shard.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/money/money.h"
#include "services/billing/alerts/alert_schema.h"
#include "services/billing/domain/types.h"
#include "services/billing/payments/payment_types.h"
#include "services/billing/payments/reload_rules.h"

namespace tollgate::billing::alerts {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;
using sql::TxMode;

// A dispute is told at most this late, so that new settings tell nothing of long ago.
constexpr int64_t kToldLateUs = 7 * kDayUs;
constexpr char kOfWorkspace[] = " WHERE shard = $1 AND workspace = $2";

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find(' ');
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

template <typename List, typename Each>
std::string Join(const List& list, Each each) {
  std::string text;
  for (const auto& one : list) text += (text.empty() ? "" : " ") + each(one);
  return text;
}

SqlResult<void> ReadSetting(Connection& db, const std::string& workspace, AlertSetting& setting) {
  setting = {};
  setting.workspace = workspace;
  return db.Query(
      std::string("SELECT emails, low_balance, cap_percents, reload_paused, actor, updated_us"
                  " FROM alert_setting") +
          kOfWorkspace,
      {LedgerShard(workspace), workspace}, [&](const Row& row) {
        setting.emails = Split(row.Bytes(0));
        setting.low_balance_nano_usd = row.Int(1);
        setting.cap_percents.clear();
        for (const std::string& part : Split(row.Bytes(2))) {
          int percent = 0;
          std::from_chars(part.data(), part.data() + part.size(), percent);
          setting.cap_percents.push_back(percent);
        }
        setting.reload_paused = row.Int(3) != 0;
        setting.actor = row.Text(4);
        setting.updated_us = row.Int(5);
      });
}

SqlResult<void> WriteSetting(Connection& db, const AlertSetting& setting) {
  const std::string emails = Join(setting.emails, [](const std::string& one) { return one; });
  const std::string percents =
      Join(setting.cap_percents, [](int percent) { return std::to_string(percent); });
  TRY(db.Execute(
      "INSERT INTO alert_setting (shard, workspace, emails, low_balance, cap_percents,"
      " reload_paused, actor, updated_us) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
      " ON CONFLICT (shard, workspace) DO UPDATE SET emails = excluded.emails,"
      " low_balance = excluded.low_balance, cap_percents = excluded.cap_percents,"
      " reload_paused = excluded.reload_paused, actor = excluded.actor,"
      " updated_us = excluded.updated_us",
      {LedgerShard(setting.workspace), setting.workspace, emails, setting.low_balance_nano_usd,
       percents, setting.reload_paused ? 1 : 0, setting.actor, setting.updated_us}));
  return {};
}

// For the audit log. Omits the addresses, which readers of the log need not know.
std::string TextOf(const AlertSetting& setting) {
  return std::to_string(setting.emails.size()) + " addresses, low balance " +
         NanoToDecimalUsd(setting.low_balance_nano_usd) + " USD, cap at " +
         Join(setting.cap_percents, [](int percent) { return std::to_string(percent); }) +
         " %, paused reload " + (setting.reload_paused ? "on" : "off");
}

SqlResult<void> ReadStates(Connection& db, const std::string& workspace,
                           std::vector<AlertState>& states) {
  states.clear();
  return db.Query(
      std::string("SELECT kind, level, fired, month, mark, version, changed_us FROM alert_state") +
          kOfWorkspace,
      {LedgerShard(workspace), workspace}, [&](const Row& row) {
        states.push_back({static_cast<AlertKind>(row.Int(0)), static_cast<int>(row.Int(1)),
                          row.Int(2) != 0, static_cast<int32_t>(row.Int(3)), row.Int(4), row.Int(5),
                          row.Int(6)});
      });
}

// Compare-and-set: returns false if another process was faster.
SqlResult<bool> WriteState(Connection& db, const std::string& workspace, const AlertState& state,
                           int64_t now_us) {
  const auto kind = static_cast<int>(state.kind);
  TRY(auto done,
      state.version == 0
          ? db.Execute("INSERT INTO alert_state (shard, workspace, kind, level, fired, month, mark,"
                       " version, changed_us) VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8)"
                       " ON CONFLICT (shard, workspace, kind, level) DO NOTHING",
                       {LedgerShard(workspace), workspace, kind, state.level, state.fired ? 1 : 0,
                        state.month, state.mark, now_us})
          : db.Execute(
                "UPDATE alert_state SET fired = $1, month = $2, mark = $3, version = version + 1,"
                " changed_us = $4 WHERE shard = $5 AND workspace = $6 AND kind = $7 AND"
                " level = $8 AND version = $9",
                {state.fired ? 1 : 0, state.month, state.mark, now_us, LedgerShard(workspace),
                 workspace, kind, state.level, state.version}));
  return done > 0;
}

SqlResult<void> ReadWallet(Connection& db, const std::string& workspace, int64_t now_us,
                           Facts& facts) {
  const int32_t shard = LedgerShard(workspace);
  facts.month = UtcMonth(now_us);
  auto wallet = db.Query(
      std::string("SELECT paid + granted - held, sequence, cap, frozen FROM wallet") + kOfWorkspace,
      {shard, workspace}, [&](const Row& row) {
        facts.available_nano_usd = row.Int(0);
        facts.sequence = row.Int(1);
        facts.cap_nano_usd = row.OptionalInt(2);
        const auto freeze = static_cast<Freeze>(row.Int(3));
        facts.books_disagree = freeze == Freeze::kFailedCheck;
        facts.frozen_by_dispute = freeze == Freeze::kDispute;
        facts.frozen = freeze == Freeze::kOperator || freeze == Freeze::kDispute;
      });
  if (!wallet.ok()) return wallet;
  return db.Query("SELECT spent FROM cap_month WHERE shard = $1 AND workspace = $2 AND month = $3",
                  {shard, workspace, facts.month},
                  [&](const Row& row) { facts.month_spent_nano_usd = row.Int(0); });
}

SqlResult<void> ReadDisputes(Connection& db, const std::string& workspace, int64_t now_us,
                             Facts& facts) {
  using State = payments::DisputeView::State;
  return db.Query(
      std::string("SELECT payment, amount, state, opened_us, closed_us FROM payment_dispute") +
          kOfWorkspace + " AND taken = 1 AND (opened_us > $3 OR closed_us > $3)",
      {LedgerShard(workspace), workspace, now_us - kToldLateUs}, [&](const Row& row) {
        const auto state = static_cast<State>(row.Int(2));
        const auto newest = [&](DisputeFact& fact, int64_t at_us) {
          if (at_us <= std::max(fact.at_us, now_us - kToldLateUs)) return;
          fact = {at_us, row.Text(0), row.Int(1)};
        };
        newest(facts.dispute_opened, row.Int(3));
        if (state == State::kWon) newest(facts.dispute_won, row.Int(4));
        if (state == State::kLost) newest(facts.dispute_lost, row.Int(4));
      });
}

SqlResult<void> ReadFacts(Connection& db, const std::string& workspace, int64_t now_us,
                          Snapshot& snapshot) {
  Facts& facts = snapshot.facts;
  facts = {};
  TRY(ReadWallet(db, workspace, now_us, facts));
  TRY(ReadDisputes(db, workspace, now_us, facts));
  for (const AlertState& state : snapshot.states) {
    if (state.kind != AlertKind::kLowBalance || !state.fired ||
        facts.available_nano_usd < snapshot.setting.low_balance_nano_usd) {
      continue;
    }
    TRY(
        db.Query("SELECT 1 FROM entry WHERE shard = $1 AND workspace = $2 AND sequence > $3 AND"
                 " kind IN (1, 2, 21) LIMIT 1",
                 {LedgerShard(workspace), workspace, state.mark},
                 [&](const Row&) { facts.topped_up = true; }));
  }
  return db.Query(
      "SELECT r.enabled, r.state, r.declines, r.pause_reason, p.state, p.checkout_url"
      " FROM auto_reload r LEFT JOIN payment p ON p.shard = r.shard AND"
      " p.workspace = r.workspace AND p.id = r.confirm_page"
      " WHERE r.shard = $1 AND r.workspace = $2",
      {LedgerShard(workspace), workspace}, [&](const Row& row) {
        const auto page = static_cast<payments::PaymentState>(row.OptionalInt(4).value_or(0));
        facts.reload_enabled = row.Int(0) != 0;
        // The notice waits for the page that it names.
        facts.reload_paused = row.Int(1) == static_cast<int>(payments::ReloadState::kPaused) &&
                              page != payments::PaymentState::kRequested;
        facts.reload_declined = row.Int(2) > 0;
        facts.reload_reason = row.Text(3);
        if (page == payments::PaymentState::kSubmitted &&
            facts.reload_reason == payments::kPausedForConfirmation) {
          facts.confirm_url = row.Text(5);
        }
      });
}

SqlResult<void> ReadSnapshot(Connection& db, const std::string& workspace, int64_t now_us,
                             Snapshot& snapshot) {
  TRY(ReadSetting(db, workspace, snapshot.setting));
  TRY(ReadStates(db, workspace, snapshot.states));
  snapshot.webhooks.clear();
  TRY(db.Query(std::string("SELECT id FROM alert_webhook") + kOfWorkspace + " ORDER BY id",
               {LedgerShard(workspace), workspace},
               [&](const Row& row) { snapshot.webhooks.push_back(row.Text(0)); }));
  return ReadFacts(db, workspace, now_us, snapshot);
}

SqlResult<void> Insert(Connection& db, const Delivery& row) {
  TRY(db.Execute(
      "INSERT INTO alert_outbox (shard, workspace, id, notice, kind, payload, channel, target,"
      " attempts, next_us, state, last_error, created_us) VALUES ($1, $2, $3, $4, $5, $6, $7, $8,"
      " 0, $9, 1, '', $10) ON CONFLICT (shard, workspace, id) DO NOTHING",
      {LedgerShard(row.workspace), row.workspace, row.id, row.notice, row.kind, row.payload,
       static_cast<int>(row.channel), row.target, row.next_us, row.created_us}));
  return {};
}

}  // namespace

SqlResult<void> AlertStore::Migrate() {
  TRY(audit::Migrate(database_));
  TRY(MigrateRequestIds(database_));
  return database_.Migrate(kComponent, AlertMigrations());
}

SqlResult<AlertSetting> AlertStore::FindSetting(const std::string& workspace) {
  AlertSetting setting;
  TRY(database_.Transact(TxMode::kRead,
                         [&](Connection& db) { return ReadSetting(db, workspace, setting); }));
  return setting;
}

SqlResult<AlertSetting> AlertStore::UpdateSetting(const std::string& workspace, int64_t now_us,
                                                  const audit::Origin& by,
                                                  const std::string& content, const Change& change,
                                                  SeenRequest& seen) {
  AlertSetting setting;
  auto done = database_.Transact(TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    TRY(ReadSetting(db, workspace, setting));
    TRY(auto looked, SeeRequest(db, by, "alert_settings " + workspace + "\n" + content, now_us));
    seen = looked;
    if (seen != SeenRequest::kFresh) return {};
    const int64_t limit = setting.low_balance_nano_usd;
    change(setting);
    setting.updated_us = now_us;
    TRY(WriteSetting(db, setting));
    if (setting.low_balance_nano_usd != limit) {
      TRY(
          db.Execute("UPDATE alert_state SET fired = 0, version = version + 1, changed_us = $1"
                     " WHERE shard = $2 AND workspace = $3 AND kind = 1 AND fired = 1",
                     {now_us, LedgerShard(workspace), workspace}));
    }
    return audit::Append(db, audit::kEntries,
                         audit::RecordOf(by, now_us, "alert_settings.update", workspace, workspace,
                                         TextOf(setting)));
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return setting;
}

SqlResult<std::vector<std::string>> AlertStore::Watched() {
  std::vector<std::string> found;
  auto done = database_.Transact(TxMode::kRead, [&](Connection& db) {
    found.clear();
    return db.Query(
        "SELECT workspace FROM alert_setting UNION"
        " SELECT workspace FROM wallet WHERE frozen = 3 UNION"
        " SELECT workspace FROM alert_state WHERE kind = 5 AND fired = 1",
        {}, [&](const Row& row) { found.push_back(row.Text(0)); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return found;
}

SqlResult<std::vector<AlertKind>> AlertStore::Run(const std::string& workspace, int64_t now_us,
                                                  const Decider& decide) {
  std::vector<AlertKind> notified;
  Snapshot snapshot;
  // Most checks change nothing, so they must not wait for SQLite's only writer.
  TRY(database_.Transact(TxMode::kRead, [&](Connection& db) {
    return ReadSnapshot(db, workspace, now_us, snapshot);
  }));
  if (decide(snapshot).empty()) return notified;
  auto done = database_.Transact(TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    notified.clear();
    TRY(ReadSnapshot(db, workspace, now_us, snapshot));
    for (const Rendered& step : decide(snapshot)) {
      TRY(auto written, WriteState(db, workspace, step.state, now_us));
      if (!written || !step.notify) continue;
      for (const Delivery& delivery : step.deliveries) {
        TRY(Insert(db, delivery));
      }
      notified.push_back(step.state.kind);
    }
    return {};
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return notified;
}

}  // namespace tollgate::billing::alerts
