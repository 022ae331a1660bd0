// Reads used by the admin services, on both databases.
#include <gtest/gtest.h>

#include "common/base/time_units.h"
#include "services/billing/reports/receipts.h"
#include "services/billing/storage/testing/ledger_database.h"
#include "services/billing/reports/transactions.h"
#include "services/billing/reports/usage_query.h"

namespace tollgate::billing {
namespace {

using AdminReadsTest = LedgerDatabaseTest;

constexpr int64_t kQuarterUs = 15 * kMinuteUs;

// Decision 64: a new wallet is stored once, without an entry, and the ledger verifies with it.
TEST_P(AdminReadsTest, AnOpenedWalletIsThereAndEmpty) {
  EXPECT_FALSE(*HasWallet(*database_, "ws"));
  Run({OpenWallet{"ws"}, OpenWallet{"ws"}});
  Run({OpenWallet{"ws"}});
  EXPECT_TRUE(*HasWallet(*database_, "ws"));
  AddCredit credit = MakeAddCredit("c", 100);
  credit.open_only = true;
  EXPECT_TRUE(Run({credit}).replies.front().ok);
  credit.workspace = "other";
  EXPECT_EQ(Run({credit}).replies.front().denied_by, Deny::kUnknownWorkspace);
  EXPECT_FALSE(*HasWallet(*database_, "other"));
  ExpectVerified();
}

TEST_P(AdminReadsTest, TransactionsCountTheBalanceBack) {
  std::vector<int64_t> after = {0};
  for (int i = 1; i <= 20; ++i) {
    const int64_t at = kNowUs + i * kMinuteUs;
    if (i % 4 == 0) {
      Run({MakeSetCap("cap" + std::to_string(i), 1'000'000)}, at);
      after.push_back(after.back());
    } else {
      Run({MakeAddCredit("c" + std::to_string(i), i, i % 2 == 0)}, at);
      after.push_back(after.back() + i);
    }
  }
  EntryQuery query;
  query.workspace = "ws";
  query.limit = 3;
  int rows = 0;
  while (true) {
    auto page = ReadTransactions(*database_, query);
    ASSERT_TRUE(page.ok()) << page.error().message;
    const bool more = page->size() > 3;
    if (more) page->pop_back();
    for (const PostedEntry& row : *page) {
      EXPECT_EQ(row.entry.sequence, 20 - rows++);
      EXPECT_EQ(row.balance_nano_usd, after[row.entry.sequence]);
    }
    if (!more) break;
    query.after_sequence = page->back().entry.sequence;
    query.after_balance_nano_usd = page->back().balance_nano_usd;
  }
  EXPECT_EQ(rows, 20);
  // Minutes 5 to 14, top-ups only.
  EntryQuery part;
  part.workspace = "ws";
  part.kind = EntryKind::kTopup;
  part.start_us = kNowUs + 5 * kMinuteUs;
  part.end_us = kNowUs + 15 * kMinuteUs;
  auto page = ReadTransactions(*database_, part);
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->size(), 5U);
  EXPECT_EQ(page->front().entry.sequence, 13);
  EXPECT_EQ(page->back().entry.sequence, 5);
  for (const PostedEntry& row : *page) {
    EXPECT_EQ(row.balance_nano_usd, after[row.entry.sequence]);
  }
  auto one = ReadTransaction(*database_, "ws", 7);
  ASSERT_TRUE(one.ok() && one->has_value());
  EXPECT_EQ((*one)->balance_nano_usd, after[7]);
  EXPECT_FALSE(ReadTransaction(*database_, "ws", 21)->has_value());
  EXPECT_TRUE(ReadTransactions(*database_, {.workspace = "none"})->empty());
}

TEST_P(AdminReadsTest, CommandsAreListedNewestFirst) {
  Run({MakeAddCredit("paid", 1'000)}, kNowUs);
  for (int i = 0; i < 5; ++i) {
    Correct refund;
    refund.workspace = "ws";
    refund.command_id = "r" + std::to_string(i);
    refund.kind = CommandKind::kRefund;
    refund.amount_nano_usd = 10;
    refund.actor = "anna";
    refund.reason = "test";
    Run({refund}, kNowUs + i / 2 * kSecondUs);  // two in the same microsecond
  }
  CommandQuery query;
  query.workspace = "ws";
  query.kinds = {CommandKind::kRefund, CommandKind::kWriteOff};
  query.limit = 2;
  std::vector<std::string> ids;
  while (true) {
    auto page = ReadCommands(*database_, query);
    ASSERT_TRUE(page.ok()) << page.error().message;
    const bool more = page->size() > 2;
    if (more) page->pop_back();
    for (const Command& command : *page) ids.push_back(command.command_id);
    if (!more) break;
    query.after_us = page->back().at_us;
    query.after_id = page->back().command_id;
  }
  EXPECT_EQ(ids, (std::vector<std::string>{"r4", "r3", "r2", "r1", "r0"}));
  query.after_id.clear();
  query.state = CommandState::kPending;
  EXPECT_TRUE(ReadCommands(*database_, query)->empty());
  EXPECT_TRUE(ReadCommandById(*database_, "ws", "r3")->has_value());
  EXPECT_FALSE(ReadCommandById(*database_, "other", "r3")->has_value());
}

// Callers may use one x-request-id for every request.
TEST_P(AdminReadsTest, MatchesOfAReceiptAreCountedUpToABound) {
  Run({MakeAddCredit("c", 1'000'000'000)});
  Id last;
  int count = 0;
  for (int batch = 0; batch < 11; ++batch) {
    const int64_t at = kNowUs + batch * kMinuteUs;
    std::vector<Operation> authorizes, settles;
    for (int i = 0; i < 100; ++i) {
      last = TestId(++count, at + i * 1000);
      Authorize authorize = MakeAuthorize(last, 100, 50);
      authorize.client_request_id = "same";
      authorizes.push_back(authorize);
      settles.push_back(MakeSettle(last, 100, 10));
    }
    Run(authorizes, at);
    Run(settles, at + kSecondUs);
  }
  auto found = ReadReceipt(*database_, "ws", "same");
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->hold.id, last);
  EXPECT_EQ((*found)->matches, kMaxMatches);
}

TEST_P(AdminReadsTest, AReceiptIsFoundByEachOfItsIds) {
  Run({MakeAddCredit("c", 1'000'000)});
  std::vector<Id> ids;
  for (int i = 0; i < 6; ++i) {
    const int64_t at = kNowUs + i * kMinuteUs;
    const Id id = TestId(i + 1, at);
    Authorize authorize = MakeAuthorize(id, 100, 50);
    authorize.client_request_id = i % 2 == 0 ? "caller" : "";
    authorize.surface = Surface::kEmbeddings;
    Run({authorize}, at);
    if (i < 5) Run({MakeSettle(id, 100, 10)}, at + kSecondUs);
    ids.push_back(id);
  }
  for (int i = 0; i < 6; ++i) {
    for (const std::string& text :
         {ids[i].ToHex(), "req_" + ids[i].ToBase62(), "chatcmpl-" + ids[i].ToBase62()}) {
      for (const std::string& workspace : {std::string("ws"), std::string(kAnyWorkspace)}) {
        auto found = ReadReceipt(*database_, workspace, text);
        ASSERT_TRUE(found.ok()) << found.error().message;
        ASSERT_TRUE(found->has_value()) << text << " in " << workspace;
        EXPECT_EQ((*found)->hold.id, ids[i]);
        EXPECT_EQ((*found)->matches, 1);
        EXPECT_EQ((*found)->entries.size(), i < 5 ? 3U : 1U);
        for (const Entry& entry : (*found)->entries) EXPECT_EQ(entry.request, ids[i].ToBytes());
      }
    }
  }
  auto newest = ReadReceipt(*database_, "ws", "caller");
  ASSERT_TRUE(newest.ok() && newest->has_value());
  EXPECT_EQ((*newest)->hold.id, ids[4]);
  EXPECT_EQ((*newest)->matches, 3);
  EXPECT_FALSE(ReadReceipt(*database_, "other", ids[0].ToHex())->has_value());
  EXPECT_FALSE(ReadReceipt(*database_, "ws", "")->has_value());
  EXPECT_FALSE(ReadReceipt(*database_, "ws", "nobody")->has_value());
  // An x-request-id chosen by the caller is known only in its workspace.
  EXPECT_FALSE(ReadReceipt(*database_, std::string(kAnyWorkspace), "caller")->has_value());
  EXPECT_FALSE(
      ReadReceipt(*database_, std::string(kAnyWorkspace), TestId(99, kNowUs).ToHex())->has_value());

  RequestQuery query;
  query.workspace = "ws";
  query.limit = 2;
  std::vector<Id> listed;
  while (true) {
    auto page = ReadRequests(*database_, query);
    ASSERT_TRUE(page.ok()) << page.error().message;
    const bool more = page->size() > 2;
    if (more) page->pop_back();
    for (const Hold& hold : *page) listed.push_back(hold.id);
    if (!more) break;
    query.after = listed.back();
  }
  EXPECT_EQ(listed, (std::vector<Id>{ids[4], ids[3], ids[2], ids[1], ids[0]})) << "not running";
  RequestQuery some;
  some.workspace = "ws";
  some.client_request_id = "caller";
  some.key_id = "key";
  some.model = "model";
  some.outcome = Outcome::kCompleted;
  some.start_us = kNowUs + kMinuteUs;
  some.end_us = kNowUs + 4 * kMinuteUs;
  auto page = ReadRequests(*database_, some);
  ASSERT_TRUE(page.ok()) << page.error().message;
  ASSERT_EQ(page->size(), 1U);
  EXPECT_EQ(page->front().id, ids[2]);
}

// Whatever the intervals, the sums equal those of the requests.
TEST_P(AdminReadsTest, UsageByIntervalAddsUpToTheRequests) {
  const int64_t day = 24LL * 3600 * kSecondUs;
  const int64_t first = kNowUs / day * day;
  Run({MakeAddCredit("c", 1'000'000'000)}, first);
  std::vector<int64_t> admitted;
  int64_t charged = 0;
  for (int i = 0; i < 40; ++i) {
    const int64_t at = first + i * 97 * kMinuteUs + i;
    const Id id = TestId(i + 1, at);
    Authorize authorize = MakeAuthorize(id, 100, 50);
    authorize.model = i % 3 == 0 ? "a" : "b";
    authorize.key_id = i % 2 == 0 ? "k1" : "k2";
    Run({authorize}, at);
    charged += Run({MakeSettle(id, 100, i)}, at + kSecondUs).replies.front().charged_nano_usd;
    admitted.push_back(at);
  }
  for (const int64_t step : {kQuarterUs, 4 * kQuarterUs, day}) {
    for (const bool cut : {false, true}) {
      UsageQuery query;
      query.workspace = "ws";
      const int64_t start = cut ? admitted[3] : first;
      query.bounds_us = {start};
      for (int64_t at = first + step; at < first + 3 * day; at += step) {
        if (at > start) query.bounds_us.push_back(at);
      }
      const int64_t end = cut ? admitted[30] : first + 3 * day;
      while (query.bounds_us.back() >= end) query.bounds_us.pop_back();
      query.bounds_us.push_back(end);
      query.whole_days = step == day;
      query.by_key = cut;
      auto rows = QueryUsage(*database_, query);
      ASSERT_TRUE(rows.ok()) << rows.error().message;
      std::vector<int64_t> wanted(query.bounds_us.size());
      int64_t total = 0;
      for (const int64_t at : admitted) {
        if (at < start || at >= end) continue;
        size_t interval = 0;
        while (query.bounds_us[interval + 1] <= at) ++interval;
        ++wanted[interval];
      }
      for (const UsageSum& row : *rows) {
        wanted[row.interval] -= row.sums.requests;
        total += row.sums.charged_nano_usd;
        EXPECT_EQ(row.key_id.empty(), !cut);
      }
      for (const int64_t left : wanted) EXPECT_EQ(left, 0) << step << cut;
      if (!cut) EXPECT_EQ(total, charged);
    }
  }
  UsageQuery one;
  one.workspace = "ws";
  one.key_id = "k1";
  one.model = "a";
  one.bounds_us = {first, first + 3 * day};
  one.whole_days = true;
  auto rows = QueryUsage(*database_, one);
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().sums.requests, 7);
  one.workspace = "other";
  EXPECT_TRUE(QueryUsage(*database_, one)->empty());
}

INSTANTIATE_TEST_SUITE_P(Databases, AdminReadsTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
