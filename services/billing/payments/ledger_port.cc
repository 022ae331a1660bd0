#include "services/billing/payments/ledger_port.h"

#include <future>
#include <memory>
#include <utility>

#include "common/base/ledger_shard.h"
#include "services/billing/reports/reports.h"
#include "services/billing/reports/transactions.h"

namespace tollgate::billing::payments {

Result<Reply> LedgerServicePort::Submit(Operation operation) {
  auto promise = std::make_shared<std::promise<Result<Reply>>>();
  auto future = promise->get_future();
  std::vector<Operation> operations;
  operations.push_back(std::move(operation));
  // The ledger always replies: its calls have their own timeout.
  ledger_.Submit(std::move(operations), [promise](Result<std::vector<Reply>> replies) {
    if (!replies.ok()) return promise->set_value(Fail{std::move(replies).error()});
    // Nothing is decided yet, so this is not a refusal.
    if (replies->front().denied_by == Deny::kUnavailable) {
      return promise->set_value(
          Unavailable("billing: the ledger of this workspace cannot be written"));
    }
    promise->set_value(std::move(replies->front()));
  });
  return future.get();
}

namespace {

// Runs a read of the ledger's database and waits for it.
template <typename T, typename Read>
Result<T> Blocking(LedgerService& ledger, Read read) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  ledger.Read(
      [promise, read = std::move(read)](sql::Database& database) {
        sql::SqlResult<T> value = read(database);
        if (!value.ok()) return promise->set_value(Fail{sql::ToError(value.error())});
        promise->set_value(std::move(*value));
      },
      [promise](Error refused) { promise->set_value(Fail{std::move(refused)}); });
  return future.get();
}

// Commands stand for entries: verify-ledger compares each with its entry.
sql::SqlResult<std::vector<LedgerPort::Posting>> Postings(sql::Database& database,
                                                          const std::string& which,
                                                          const std::vector<sql::Param>& params) {
  std::vector<LedgerPort::Posting> postings;
  const std::string text =
      "SELECT workspace, id, kind, amount, reference, actor, reason, posted_us FROM (SELECT"
      " command.*, CASE WHEN decided_us > at_us THEN decided_us ELSE at_us END AS posted_us"
      " FROM command WHERE state = 1 AND (kind IN (20, 31) OR (kind = 6 AND granted = 0))) posted"
      " WHERE true" +
      which + " ORDER BY workspace, posted_us, id";
  auto done = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
    postings.clear();
    return db.Query(text, params, [&](const sql::Row& row) {
      const auto kind = static_cast<CommandKind>(row.Int(2));
      const int sign = kind == CommandKind::kRefundFailed ? -1 : 1;
      postings.push_back({row.Text(0), row.Text(1), kind, sign * row.Int(3), row.Text(4),
                          row.Text(5), row.Text(6), row.Int(7)});
    });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return postings;
}

}  // namespace

Result<Balance> LedgerServicePort::ReadBalance(const std::string& workspace) {
  return Blocking<Balance>(ledger_, [workspace, now_us = ledger_.NowUs()](sql::Database& database) {
    return billing::ReadBalance(database, workspace, now_us);
  });
}

Result<bool> LedgerServicePort::HasWallet(const std::string& workspace) {
  return Blocking<bool>(ledger_, [workspace](sql::Database& database) {
    return billing::HasWallet(database, workspace);
  });
}

Result<std::vector<LedgerPort::Posting>> LedgerServicePort::ReadPostings(
    const std::string& workspace) {
  return Blocking<std::vector<Posting>>(ledger_, [workspace](sql::Database& database) {
    return Postings(database, " AND shard = $1 AND workspace = $2",
                    {LedgerShard(workspace), workspace});
  });
}

Result<std::vector<LedgerPort::Posting>> LedgerServicePort::PostingsBetween(int64_t start_us,
                                                                            int64_t end_us) {
  return Blocking<std::vector<Posting>>(ledger_, [start_us, end_us](sql::Database& database) {
    return Postings(database, " AND posted_us >= $1 AND posted_us < $2", {start_us, end_us});
  });
}

Result<std::optional<LedgerPort::Lowering>> LedgerServicePort::NewestLowering(
    const std::string& workspace) {
  using Found = std::optional<Lowering>;
  return Blocking<Found>(ledger_, [workspace](sql::Database& database) -> sql::SqlResult<Found> {
    Found found;
    auto done = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
      found.reset();
      return db.Query(
          "SELECT kind, CASE WHEN decided_us > at_us THEN decided_us ELSE at_us END AS posted_us"
          " FROM command WHERE shard = $1 AND workspace = $2 AND state = 1 AND kind IN (20, 22, 25)"
          " ORDER BY posted_us DESC LIMIT 1",
          {LedgerShard(workspace), workspace}, [&](const sql::Row& row) {
            found = Lowering{static_cast<CommandKind>(row.Int(0)), row.Int(1)};
          });
    });
    if (!done.ok()) return Fail{std::move(done).error()};
    return found;
  });
}

}  // namespace tollgate::billing::payments
