#include "services/billing/storage/wallet_check.h"

#include <algorithm>
#include <iterator>

#include "services/billing/storage/schema.h"

namespace tollgate::billing {

using sql::Row;
using sql::SqlResult;

SqlResult<std::vector<std::string>> LockedWorkspaces(sql::Connection& connection,
                                                     std::span<const Operation> operations) {
  std::vector<std::string> names;
  for (const Operation& op : operations) names.push_back(WorkspaceOf(op));
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::vector<sql::Param> keys(names.begin(), names.end());
  auto tx = sql::Transaction::Begin(connection);
  if (!tx.ok()) return Fail{std::move(tx).error()};
  static const std::string kHead = "SELECT workspace FROM wallet WHERE workspace IN";
  const auto read = [&](std::string_view tail, std::vector<std::string>& found) {
    auto done = connection.QueryIn(kHead, keys, tail,
                                   [&](const Row& row) { found.push_back(row.Text(0)); });
    std::sort(found.begin(), found.end());
    return done;
  };
  std::vector<std::string> free;
  if (auto done = read("FOR UPDATE SKIP LOCKED", free); !done.ok()) {
    return Fail{std::move(done).error()};
  }
  // A wallet that does not exist is not locked.
  std::vector<std::string> all;
  if (auto done = read("", all); !done.ok()) return Fail{std::move(done).error()};
  std::vector<std::string> locked;
  std::set_difference(all.begin(), all.end(), free.begin(), free.end(), std::back_inserter(locked));
  return locked;
}

SqlResult<std::string> FreezeBrokenWallet(sql::Connection& connection,
                                          const std::string& workspace) {
  static const std::string kWallet =
      "SELECT " + std::string(kWalletColumns) + " FROM wallet WHERE workspace = $1 FOR UPDATE";
  static const std::string kNewest = "SELECT " + std::string(kEntryColumns) +
                                     " FROM entry WHERE workspace = $1 ORDER BY sequence DESC"
                                     " LIMIT 1";
  auto tx = sql::Transaction::Begin(connection);
  if (!tx.ok()) return Fail{std::move(tx).error()};
  Wallet wallet;
  auto done =
      connection.Query(kWallet, {workspace}, [&](const Row& row) { wallet = ReadWallet(row); });
  if (!done.ok()) return Fail{std::move(done).error()};
  Entry newest;
  newest.hash = std::string(32, '\0');
  done = connection.Query(kNewest, {workspace}, [&](const Row& row) { newest = ReadEntry(row); });
  if (!done.ok()) return Fail{std::move(done).error()};
  if (wallet.sequence == newest.sequence && wallet.head == newest.hash) return std::string();
  if (!wallet.workspace.empty() && wallet.frozen != Freeze::kFailedCheck) {
    auto frozen = connection.Execute("UPDATE wallet SET frozen = $1 WHERE workspace = $2",
                                     {static_cast<int>(Freeze::kFailedCheck), workspace});
    if (!frozen.ok()) return Fail{std::move(frozen).error()};
    if (auto committed = tx->Commit(); !committed.ok()) return Fail{std::move(committed).error()};
  }
  return "the wallet is at entry " + std::to_string(wallet.sequence) + ", its newest entry is " +
         std::to_string(newest.sequence) +
         (wallet.sequence == newest.sequence ? ", and their hashes differ" : "");
}

}  // namespace tollgate::billing
