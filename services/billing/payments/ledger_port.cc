#include "services/billing/payments/ledger_port.h"

#include <future>
#include <memory>
#include <utility>

#include "services/billing/domain/shard.h"
#include "services/billing/storage/reports.h"

namespace tollgate::billing::payments {

Result<Reply> LedgerServicePort::Submit(Operation operation) {
  auto promise = std::make_shared<std::promise<Result<Reply>>>();
  auto future = promise->get_future();
  std::vector<Operation> operations;
  operations.push_back(std::move(operation));
  // The ledger always answers: its calls have a time-out of their own.
  ledger_.Submit(std::move(operations), [promise](Result<std::vector<Reply>> replies) {
    if (!replies.ok()) return promise->set_value(Fail{std::move(replies).error()});
    // Nothing is decided yet: not a refusal.
    if (replies->front().denied_by == Deny::kUnavailable) {
      return promise->set_value(
          Unavailable("billing: the ledger of this workspace cannot be written"));
    }
    promise->set_value(std::move(replies->front()));
  });
  return future.get();
}

Result<Balance> LedgerServicePort::ReadBalance(const std::string& workspace) {
  auto promise = std::make_shared<std::promise<Result<Balance>>>();
  auto future = promise->get_future();
  ledger_.Read(
      [promise, workspace, now_us = ledger_.NowUs()](sql::Database& database) {
        auto balance = billing::ReadBalance(database, workspace, now_us);
        if (!balance.ok()) return promise->set_value(Fail{sql::ToError(balance.error())});
        promise->set_value(std::move(*balance));
      },
      [promise](Error refused) { promise->set_value(Fail{std::move(refused)}); });
  return future.get();
}

Result<std::vector<LedgerPort::Posting>> LedgerServicePort::ReadPostings(
    const std::string& workspace) {
  auto promise = std::make_shared<std::promise<Result<std::vector<Posting>>>>();
  auto future = promise->get_future();
  ledger_.Read(
      [promise, workspace](sql::Database& database) {
        std::vector<Posting> postings;
        auto done = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
          postings.clear();
          return db.Query(
              "SELECT id, kind, amount, reference FROM command WHERE shard = $1 AND workspace = $2"
              " AND state = 1 AND ((kind = 6 AND id LIKE 'pay-%') OR"
              " (kind = 20 AND id LIKE 'refund-%')) ORDER BY id",
              {LedgerShard(workspace), workspace}, [&](const sql::Row& row) {
                postings.push_back({row.Text(0),
                                    row.Int(1) == static_cast<int>(CommandKind::kRefund),
                                    row.Int(2), row.Text(3)});
              });
        });
        if (!done.ok()) return promise->set_value(Fail{sql::ToError(done.error())});
        promise->set_value(std::move(postings));
      },
      [promise](Error refused) { promise->set_value(Fail{std::move(refused)}); });
  return future.get();
}

}  // namespace tollgate::billing::payments
