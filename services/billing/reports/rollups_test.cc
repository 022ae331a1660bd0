// Roll-ups that follow the entries (ADR 0025): at any moment, wherever their cut is, they give the
// same sums as usage records and entries. TOLLGATE_ROLLUP_STEPS sets the length of the random
// histories, TOLLGATE_ROLLUP_KILLS how often a process is killed.
#include "services/billing/reports/rollups.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "common/base/time_units.h"
#include "services/billing/archive/archive.h"
#include "services/billing/domain/testing/ledger_history.h"
#include "services/billing/reports/key_spend.h"
#include "services/billing/reports/reports.h"
#include "services/billing/reports/usage_query.h"
#include "services/billing/statement/statement.h"
#include "services/billing/storage/rollup_tables.h"
#include "services/billing/storage/schema.h"
#include "services/billing/storage/testing/ledger_database.h"

namespace tollgate::billing {
namespace {

int FromEnvironment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// Uses several keys and models, the same for each attempt of a request.
Operation WithKeyAndModel(Operation operation) {
  if (auto* authorize = std::get_if<Authorize>(&operation)) {
    const uint64_t hash = std::hash<std::string>()(authorize->request_id.ToBytes());
    authorize->key_id = "key" + std::to_string(hash % 7);
    authorize->model = "model" + std::to_string(hash / 7 % 3);
  }
  return operation;
}

struct Plain {
  std::string key_id, model;
  int64_t admitted_us = 0;
  UsageChange sums;
};

using GroupSums = std::map<std::tuple<size_t, std::string, std::string>, UsageChange>;

std::string Told(const UsageChange& c) {
  std::string text;
  for (const int64_t value :
       {c.requests, c.free_requests, c.usage.prompt, c.usage.cached, c.usage.cache_write,
        c.usage.completion, c.usage.reasoning, c.charged_nano_usd, c.overrun_nano_usd}) {
    text += std::to_string(value) + ' ';
  }
  return text;
}

class RollUpsTest : public LedgerDatabaseTest {
 protected:
  bool Fold(const std::string& workspace, int limit) {
    auto folded = FoldEntries(*connection_, workspace, limit);
    EXPECT_TRUE(folded.ok()) << folded.error().message;
    return folded.ok() && *folded;
  }
  void FoldAll() {
    auto done = FoldLedger(*connection_);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  void Clear() {
    for (const std::string_view table : kRollUpNames) {
      ASSERT_TRUE(connection_->Execute("DELETE FROM " + std::string(table)).ok());
    }
  }

  std::vector<Plain> Records(const std::string& workspace) {
    std::vector<Plain> records;
    auto read = connection_->Query(
        "SELECT key_id, model, admitted_us, prompt, cached, cache_write, completion, reasoning,"
        " charged, overrun FROM usage_record WHERE workspace = $1",
        {workspace}, [&](const sql::Row& row) {
          Plain one{row.Text(0), row.Text(1), row.Int(2), {}};
          (row.Int(3) + row.Int(6) > 0 ? one.sums.requests : one.sums.free_requests) = 1;
          one.sums.usage = {row.Int(3), row.Int(4), row.Int(5), row.Int(6), row.Int(7)};
          one.sums.charged_nano_usd = row.Int(8);
          one.sums.overrun_nano_usd = row.Int(9);
          records.push_back(std::move(one));
        });
    EXPECT_TRUE(read.ok()) << read.error().message;
    return records;
  }

  static GroupSums PlainSums(const std::vector<Plain>& records, const UsageQuery& query) {
    GroupSums sums;
    for (const Plain& one : records) {
      if (one.admitted_us < query.bounds_us.front() || one.admitted_us >= query.bounds_us.back() ||
          (query.model && one.model != *query.model)) {
        continue;
      }
      const auto after =
          std::upper_bound(query.bounds_us.begin(), query.bounds_us.end(), one.admitted_us);
      sums[{after - query.bounds_us.begin() - 1, query.by_model ? one.model : "",
            query.by_key ? one.key_id : ""}] += one.sums;
    }
    return sums;
  }

  // Groups beyond the top are merged into one, named "other".
  static void KeepTop(GroupSums& sums, size_t top) {
    std::map<std::pair<std::string, std::string>, int64_t> cost;
    for (const auto& [key, sum] : sums) {
      if (std::get<1>(key) == "other") continue;
      cost[{std::get<1>(key), std::get<2>(key)}] -= sum.charged_nano_usd;
    }
    std::set<std::pair<int64_t, std::pair<std::string, std::string>>> order;
    for (const auto& [group, negative] : cost) order.emplace(negative, group);
    while (order.size() > top) {
      const auto [model, key] = std::prev(order.end())->second;
      order.erase(std::prev(order.end()));
      for (auto at = sums.begin(); at != sums.end();) {
        if (std::get<1>(at->first) != model || std::get<2>(at->first) != key) {
          ++at;
          continue;
        }
        sums[{std::get<0>(at->first), "other", ""}] += at->second;
        at = sums.erase(at);
      }
    }
  }

  void ExpectUsage(const std::string& workspace, History& random) {
    const std::vector<Plain> records = Records(workspace);
    int64_t first_us = INT64_MAX, last_us = 0;
    for (const Plain& one : records) {
      first_us = std::min(first_us, one.admitted_us);
      last_us = std::max(last_us, one.admitted_us);
    }
    if (records.empty()) return;
    for (int i = 0; i < 6; ++i) {
      UsageQuery query;
      query.workspace = workspace;
      const int64_t unit = std::vector<int64_t>{1, kHourUs, kDayUs}[random.Below(3)];
      const auto any = [&] {
        return (first_us - kHourUs +
                static_cast<int64_t>(random.Below(last_us - first_us + 2 * kHourUs))) /
               unit * unit;
      };
      const int64_t start_us = i == 0 ? first_us / kDayUs * kDayUs : any();
      const int64_t end_us = i == 0 ? last_us + kDayUs : std::max(any(), start_us + unit);
      query.bounds_us = {start_us, end_us};
      query.whole_days = true;
      // Intervals start at quarters of an hour, as in every time zone.
      const int64_t middle_us = (start_us + end_us) / 2 / kQuarterUs * kQuarterUs;
      if (random.Below(2) == 0 && start_us < middle_us) {
        query.bounds_us = {start_us, middle_us, end_us};
        query.whole_days = false;
      }
      query.by_model = random.Below(2) == 0;
      query.by_key = random.Below(2) == 0;
      if (query.by_key) query.top = 1 + random.Below(9);
      if (random.Below(4) == 0) query.model = "model1";
      auto read = QueryUsage(*database_, query);
      ASSERT_TRUE(read.ok()) << read.error().message;
      GroupSums told, plain = PlainSums(records, query);
      for (const UsageSum& sum : *read) {
        told[{sum.interval, sum.other ? "other" : sum.model, sum.key_id}] += sum.sums;
      }
      if (query.by_key) {
        KeepTop(told, query.top);
        KeepTop(plain, query.top);
      }
      std::map<std::string, std::string> expected, found;
      for (const auto* sums : {&plain, &told}) {
        for (const auto& [key, sum] : *sums) {
          const auto& [interval, model, group] = key;
          (sums == &plain ? expected
                          : found)[std::to_string(interval) + '/' + model + '/' + group] =
              Told(sum);
        }
      }
      ASSERT_EQ(found, expected) << workspace << " from " << start_us << " to " << end_us;
    }
  }

  void ExpectTopSpent(const std::string& workspace, int64_t now_us, int limit) {
    std::map<std::string, int64_t> spent;
    for (const Plain& one : Records(workspace)) {
      if (UtcMonth(one.admitted_us) == UtcMonth(now_us)) {
        spent[one.key_id] += one.sums.charged_nano_usd;
      }
    }
    std::set<std::pair<int64_t, std::string>> order;
    for (const auto& [key, amount] : spent) {
      if (amount > 0) order.emplace(-amount, key);
    }
    while (order.size() > static_cast<size_t>(limit)) order.erase(std::prev(order.end()));
    auto read = ReadTopSpent(*database_, workspace, limit, now_us);
    ASSERT_TRUE(read.ok()) << read.error().message;
    ASSERT_EQ(read->size(), order.size()) << workspace << " in " << UtcMonth(now_us) << ", "
                                          << order.begin()->second << ' ' << -order.begin()->first;
    size_t i = 0;
    for (const auto& [negative, key] : order) {
      EXPECT_EQ((*read)[i].key_id, key);
      EXPECT_EQ((*read)[i++].spent_nano_usd, -negative);
    }
  }

  // Compares with statements computed from the entries alone, one after the other.
  void ExpectStatements(const std::string& workspace, int64_t now_us) {
    struct Month {
      std::map<int64_t, int64_t> kinds;
      std::map<std::string, std::pair<int64_t, int64_t>> keys, models;
    };
    std::map<int32_t, Month> months;
    std::set<std::string> charged;
    auto read = connection_->Query(
        "SELECT e.kind, e.debit, e.credit, e.amount, e.at_us, e.request, u.key_id, u.model"
        " FROM entry e LEFT JOIN usage_record u ON u.shard = e.shard AND u.id = e.request"
        " WHERE e.workspace = $1 ORDER BY e.sequence",
        {workspace}, [&](const sql::Row& row) {
          const auto posted = [&](int column) {
            const auto account = static_cast<Account>(row.Int(column));
            return account == Account::kPaid || account == Account::kGranted ? row.Int(3) : 0;
          };
          const int64_t amount = posted(2) - posted(1);
          if (amount == 0) return;
          Month& month = months[UtcMonth(row.Int(4))];
          month.kinds[row.Int(0)] += amount;
          const auto kind = static_cast<EntryKind>(row.Int(0));
          if (kind != EntryKind::kCharge && kind != EntryKind::kLateCorrection) return;
          const bool first = amount < 0 && charged.insert(row.Text(5)).second;
          for (auto* line : {&month.keys[row.Text(6)], &month.models[row.Text(7)]}) {
            line->first += first ? 1 : 0;
            line->second -= amount;
          }
        });
    ASSERT_TRUE(read.ok()) << read.error().message;
    auto list = ReadStatements(*connection_, workspace, now_us);
    ASSERT_TRUE(list.ok()) << list.error().message;
    int64_t balance = 0;
    for (const Statement& listed : *list) {
      Month& month = months[listed.month];
      auto statement = ReadStatement(*connection_, workspace, listed.month, now_us);
      ASSERT_TRUE(statement.ok()) << statement.error().message;
      EXPECT_EQ(statement->opening_nano_usd, balance);
      EXPECT_EQ(listed.opening_nano_usd, balance);
      int64_t used = 0, moved = 0;
      for (const auto& [kind, amount] : month.kinds) {
        balance += amount;
        moved += amount;
        if (kind == 9 || kind == 11) used -= amount;
      }
      for (const Statement& one : {listed, *statement}) {
        EXPECT_EQ(one.closing_nano_usd, balance);
        int64_t told = 0;
        for (const StatementLine& line : one.movements) told += line.amount_nano_usd;
        EXPECT_EQ(told, moved) << one.month;
      }
      const auto expect = [&](const std::vector<StatementLine>& lines, const auto& plain) {
        std::map<std::string, std::pair<int64_t, int64_t>> told, expected;
        for (const StatementLine& line : lines)
          told[line.name] = {line.requests, line.amount_nano_usd};
        for (const auto& [name, line] : plain) {
          if (line.first != 0 || line.second != 0) expected[name] = line;
        }
        EXPECT_EQ(told, expected) << listed.month;
      };
      expect(statement->by_key, month.keys);
      expect(statement->by_model, month.models);
      for (const StatementLine& line : statement->by_key) used -= line.amount_nano_usd;
      EXPECT_EQ(used, 0);
      months.erase(listed.month);
    }
    for (const auto& [month, sums] : months) {
      EXPECT_TRUE(sums.kinds.empty() || month > UtcMonth(now_us)) << month << " is not listed";
    }
  }

  void ExpectAll(History& random, int64_t now_us) {
    for (const char* workspace : {"ws0", "ws1", "ws2"}) {
      ExpectUsage(workspace, random);
      ExpectTopSpent(workspace, now_us, 1 + static_cast<int>(random.Below(5)));
      ExpectStatements(workspace, now_us);
      if (HasFatalFailure()) return;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Both, RollUpsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

TEST_P(RollUpsTest, EveryNumberIsThePlainSumWhereverTheRollUpsStand) {
  const int steps = FromEnvironment("TOLLGATE_ROLLUP_STEPS", 240);
  for (const uint64_t seed : {1, 2}) {
    SCOPED_TRACE(seed);
    History history(seed, /*with_leases=*/seed == 2);
    int64_t latest_us = 0;
    for (int step = 0; step < steps; ++step) {
      std::vector<Operation> batch;
      const int64_t now_us = history.NextTime();
      latest_us = std::max(latest_us, now_us);
      for (uint64_t n = 1 + history.Below(12); n > 0; --n) {
        batch.push_back(WithKeyAndModel(history.NextOperation()));
      }
      Run(batch, now_us);
      // One workspace is nearly up to date, one far behind, one has no roll-ups for a long time.
      if (history.Below(2) == 0) Fold("ws0", 5'000);
      if (history.Below(4) == 0) Fold("ws1", 5 + static_cast<int>(history.Below(30)));
      if (step > steps / 2 && history.Below(3) == 0) Fold("ws2", 40);
      if (history.Below(8) == 0) {
        ExpectAll(history, latest_us);
        if (HasFatalFailure()) return;
      }
      if (history.Below(24) == 0) ExpectVerified();
    }
    FoldAll();
    ExpectAll(history, latest_us);
    ExpectVerified();
    ASSERT_FALSE(Fold("ws0", 10)) << "nothing is left";
    Clear();
    FoldAll();
    ExpectAll(history, latest_us);
    ExpectVerified();
    if (HasFatalFailure()) return;
  }
}

TEST_P(RollUpsTest, ACorrectionOfARequestThatIsInTheRollUpsIsSeenAtOnce) {
  Run({MakeAddCredit("c", 1'000'000)});
  History random(3);
  const Id late = TestId(1, kNowUs), refused = TestId(2, kNowUs);
  Run({MakeAuthorize(late, 100, 50), MakeAuthorize(refused, 100, 50)});
  Run({MakeHeartbeat(late, 1, 100, 50), MakeSettle(refused, 100, 20)}, kNowUs + kSecondUs);
  Run({MakeExpire(late)}, kNowUs + 70 * kSecondUs);
  FoldAll();
  Run({MakeSettle(late, 90, 10), MakeVoid(refused, true)}, kNowUs + 80 * kSecondUs);
  for (int i = 0; i < 2; ++i) {
    UsageQuery query;
    query.workspace = "ws";
    query.bounds_us = {kNowUs - kDayUs, kNowUs + kDayUs};
    query.whole_days = true;
    auto read = QueryUsage(*database_, query);
    ASSERT_TRUE(read.ok());
    ASSERT_EQ(read->size(), 1u);
    EXPECT_EQ(read->front().sums.charged_nano_usd, 110);
    EXPECT_EQ(read->front().sums.usage.completion, 10);
    EXPECT_EQ(read->front().sums.free_requests, 1);
    ExpectTopSpent("ws", kNowUs, 5);
    ExpectStatements("ws", kNowUs + kDayUs);
    ExpectVerified();
    FoldAll();
  }
}

TEST_P(RollUpsTest, TwoProcessesThatFoldAtOnceCountNothingTwice) {
  Run({MakeAddCredit("c", 100'000'000)});
  for (int n = 1; n <= 300; ++n) {
    const Id id = TestId(n, kNowUs + n * kSecondUs);
    Authorize authorize = MakeAuthorize(id, 100, 50);
    authorize.key_id = "key" + std::to_string(n % 5);
    Run({authorize, MakeSettle(id, 100, n % 50)}, kNowUs + n * kSecondUs);
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] {
      auto connection = database_->Connect();
      ASSERT_TRUE(connection.ok());
      for (bool more = true; more;) {
        auto folded = FoldEntries(**connection, "ws", 30);
        // If two start at once, the later one tries again.
        ASSERT_TRUE(folded.ok() || folded.error().retryable()) << folded.error().message;
        more = !folded.ok() || *folded;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  History random(4);
  ExpectUsage("ws", random);
  ExpectTopSpent("ws", kNowUs, 3);
  ExpectStatements("ws", kNowUs + kDayUs);
  ExpectVerified();
}

// Runs batches and roll-up steps in turns until it is killed; writes a byte for each.
[[noreturn]] void RunUntilKilled(const std::string& url, int round, int out) {
  sql::Database::Options options;
  options.url = url;
  auto connection = (*sql::Database::Open(options))->Connect();
  if (!connection.ok()) _exit(1);
  History history(1000 + round);
  for (int step = 0;; ++step) {
    std::vector<Operation> batch;
    for (uint64_t n = 1 + history.Below(12); n > 0; --n) {
      batch.push_back(WithKeyAndModel(history.NextOperation()));
    }
    // Times continue from round to round.
    const int64_t now_us = UtcMonthStartUs(202512) - 3 * kHourUs + round * kHourUs + step;
    if (!RunBatch(**connection, batch, now_us, Policy()).ok()) _exit(1);
    for (const char* workspace : {"ws0", "ws1", "ws2"}) {
      if (!FoldEntries(**connection, workspace, 10 + step % 50).ok()) _exit(1);
      if (write(out, "f", 1) != 1) _exit(1);
    }
  }
}

TEST_P(RollUpsTest, AProcessThatIsKilledInAStepLeavesNothingHalf) {
  const int kills = FromEnvironment("TOLLGATE_ROLLUP_KILLS", 8);
  History random(5);
  for (int round = 0; round < kills; ++round) {
    SCOPED_TRACE(round);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      RunUntilKilled(database_->options().url, round, ends[1]);
    }
    close(ends[1]);
    char byte = 0;
    for (uint64_t steps = 20 + random.Below(60); steps > 0; --steps) {
      ASSERT_EQ(read(ends[0], &byte, 1), 1) << "the child ended by itself";
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ends[0]);
    ExpectAll(random, UtcMonthStartUs(202512) + kills * kHourUs);
    ExpectVerified();
    if (HasFatalFailure()) return;
  }
  FoldAll();
  ExpectAll(random, UtcMonthStartUs(202512) + kills * kHourUs);
  ExpectVerified();
}

TEST_P(RollUpsTest, VerifyFindsEveryRollUpThatWasChanged) {
  Run({MakeAddCredit("c", 1'000'000)});
  const Id id = TestId(1, kNowUs);
  Run({MakeAuthorize(id, 100, 50), MakeSettle(id, 100, 20)});
  FoldAll();
  ExpectVerified();
  const auto expect_found = [&](const std::string& change, const std::string& undo) {
    auto done = connection_->Execute(change);
    ASSERT_TRUE(done.ok()) << done.error().message;
    auto report = VerifyLedger(*database_);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_FALSE(report->ok()) << change;
    ASSERT_TRUE(connection_->Execute(undo).ok());
  };
  for (const auto& [table, column] :
       {std::pair("workspace_quarter", "requests"), std::pair("workspace_quarter", "overrun"),
        std::pair("workspace_day", "completion"), std::pair("workspace_day", "charged"),
        std::pair("key_spend_day", "charged"), std::pair("key_spend_month", "charged"),
        std::pair("statement_month", "amount"), std::pair("statement_usage", "amount"),
        std::pair("statement_usage", "requests")}) {
    const std::string set = "UPDATE " + std::string(table) + " SET " + column + " = " + column;
    expect_found(set + " + 1", set + " - 1");
    if (HasFatalFailure()) return;
  }
  // A missing row, and a row too many.
  expect_found("UPDATE key_spend_day SET key_id = 'x'", "UPDATE key_spend_day SET key_id = 'key'");
  expect_found("UPDATE workspace_day SET period = period + 1",
               "UPDATE workspace_day SET period = period - 1");
  // The marks of the roll-ups switch no check off.
  expect_found("UPDATE rollup_cut SET base_us = 1", "UPDATE rollup_cut SET base_us = 0");
  expect_found("UPDATE rollup_cut SET shard = shard + 1",
               "UPDATE rollup_cut SET shard = shard - 1");
  const std::string stale =
      "INSERT INTO rollup_stale SELECT shard, workspace, period, model FROM workspace_quarter";
  expect_found(stale, "DELETE FROM rollup_stale");
  Run({MakeAddCredit("later", 1)}, kNowUs + kSecondUs);
  ASSERT_TRUE(connection_->Execute(stale).ok());
  ExpectVerified();
  ASSERT_TRUE(connection_->Execute("UPDATE rollup_stale SET period = period - 1").ok());
  expect_found("UPDATE workspace_quarter SET charged = charged + 1",
               "UPDATE workspace_quarter SET charged = charged - 1");
  FoldAll();
  ExpectVerified();
}

TEST_P(RollUpsTest, RollUpsWithoutACutAreNotCountedAgain) {
  Run({MakeAddCredit("c", 1'000'000)});
  const Id id = TestId(1, kNowUs);
  Run({MakeAuthorize(id, 100, 50), MakeSettle(id, 100, 20)});
  FoldAll();
  ASSERT_TRUE(connection_->Execute("DELETE FROM rollup_cut").ok());
  auto report = VerifyLedger(*database_);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->ok()) << "roll-ups without a cut";
  FoldAll();
  ExpectVerified();
  ExpectStatements("ws", kNowUs + kDayUs);
}

class ArchivedRollUpsTest : public RollUpsTest {
 protected:
  // Two months, the first of which is archived; a request crosses its end.
  void FillAndArchive() {
    const int64_t start = UtcMonthStartUs(202511);
    Run({MakeAddCredit("oct", 1'000'000)}, start - 9 * kDayUs);
    int n = 0;
    for (const int64_t at : {start - 8 * kDayUs, start - kHourUs, start - 5 * kSecondUs,
                             start + kHourUs, start + kDayUs}) {
      const Id id = TestId(++n, at);
      Authorize authorize = MakeAuthorize(id, 100, 50);
      authorize.key_id = "key" + std::to_string(n % 2);
      Run({authorize}, at);
      Run({MakeSettle(id, 100, n)}, at + 10 * kSecondUs);
    }
    plain_ = Records("ws");
    const auto folder = std::filesystem::path(::testing::TempDir()) /
                        ("rollups-archive-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    auto archived = ArchiveLedger(
        *connection_, {202511, folder.string(), "ann", UtcMonthStartUs(202512) + kHourUs});
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(archived.ok()) << archived.error().message;
    ASSERT_EQ(archived->size(), 1u);
  }
  void ExpectUsageOfBothMonths() {
    UsageQuery query;
    query.workspace = "ws";
    query.bounds_us = {UtcMonthStartUs(202510), UtcMonthStartUs(202512)};
    query.whole_days = true;
    auto read = QueryUsage(*database_, query);
    ASSERT_TRUE(read.ok()) << read.error().message;
    ASSERT_EQ(read->size(), 1u);
    EXPECT_EQ(Told(read->front().sums), Told(PlainSums(plain_, query).begin()->second));
    auto statement = ReadStatement(*connection_, "ws", 202511, UtcMonthStartUs(202601));
    ASSERT_TRUE(statement.ok()) << statement.error().message;
    EXPECT_EQ(statement->opening_nano_usd, 1'000'000 - 102 - 104);
    EXPECT_EQ(statement->closing_nano_usd, 1'000'000 - 102 - 104 - 106 - 108 - 110);
    ExpectVerified();
  }
  std::vector<Plain> plain_;
};
INSTANTIATE_TEST_SUITE_P(Both, ArchivedRollUpsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

TEST_P(ArchivedRollUpsTest, WhatIsArchivedStaysInTheRollUps) {
  FillAndArchive();
  if (HasFatalFailure()) return;
  ExpectUsageOfBothMonths();
  FoldAll();
  ExpectUsageOfBothMonths();
}

// A day of an archived month counts at its noon, wherever a period begins; later usage is exact.
TEST_P(ArchivedRollUpsTest, AnArchivedDayIsInOnePeriod) {
  FillAndArchive();
  if (HasFatalFailure()) return;
  const int64_t start = UtcMonthStartUs(202511);
  UsageQuery query;
  query.workspace = "ws";
  query.bounds_us = {start - 8 * kDayUs, start - 13 * kHourUs, start - 30 * kMinuteUs,
                     start + kHourUs, start + 2 * kHourUs};
  for (const bool by_key : {false, true}) {
    SCOPED_TRACE(by_key);
    query.by_key = by_key;
    auto read = QueryUsage(*database_, query);
    ASSERT_TRUE(read.ok()) << read.error().message;
    std::map<size_t, int64_t> requests;
    for (const UsageSum& sum : *read) requests[sum.interval] += sum.sums.requests;
    // The last day of October has the requests of 23:00 and of 23:59:55.
    EXPECT_EQ(requests, (std::map<size_t, int64_t>{{0, 1}, {1, 2}, {3, 1}}));
  }
  const auto of_key = [&](int64_t from_us, int64_t to_us) {
    auto report = ReadUsage(*database_, "ws", "key1", from_us, to_us, kNowUs);
    return report.ok() ? report->total.requests : -1;
  };
  EXPECT_EQ(of_key(0, start - 30 * kMinuteUs), 2);
  EXPECT_EQ(of_key(start - 30 * kMinuteUs, start + kDayUs), 0);
}

TEST_P(ArchivedRollUpsTest, ALedgerThatWasArchivedBeforeThereWereRollUpsGetsThem) {
  FillAndArchive();
  if (HasFatalFailure()) return;
  Clear();
  ExpectUsageOfBothMonths();
  FoldAll();
  ExpectUsageOfBothMonths();
}

TEST_P(ArchivedRollUpsTest, RollUpsWhoseNextEntryIsArchivedAreMadeAnew) {
  FillAndArchive();
  if (HasFatalFailure()) return;
  ASSERT_TRUE(connection_->Execute("UPDATE rollup_cut SET sequence = 1").ok());
  ASSERT_TRUE(connection_->Execute("UPDATE workspace_day SET requests = 77").ok());
  FoldAll();
  ExpectUsageOfBothMonths();
}

}  // namespace
}  // namespace tollgate::billing
