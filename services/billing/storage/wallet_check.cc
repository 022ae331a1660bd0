#include "services/billing/storage/wallet_check.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/storage/distribute.h"
#include "services/billing/storage/schema.h"

namespace tollgate::billing {

using sql::Row;
using sql::SqlResult;

SqlResult<std::vector<std::string>> LockedWorkspaces(sql::Connection& connection,
                                                     std::span<const Operation> operations) {
  std::set<std::string_view> names;
  for (const Operation& op : operations) names.insert(WorkspaceOf(op));
  std::vector<sql::Param> keys;
  for (const std::string_view name : names) keys.insert(keys.end(), {LedgerShard(name), name});
  TRY(auto transaction, sql::Transaction::Begin(connection));
  static constexpr sql::Connection::KeyColumn kKey[] = {{"shard", sql::Param::Kind::kInt},
                                                        {"workspace", sql::Param::Kind::kText}};
  const auto read = [&](std::string_view tail, std::set<std::string>& found) {
    return connection.QueryKeys("SELECT workspace FROM wallet WHERE", kKey, keys, tail,
                                [&](const Row& row) { found.insert(row.Text(0)); });
  };
  std::set<std::string> free;
  TRY(read("FOR UPDATE SKIP LOCKED", free));
  // A wallet that does not exist cannot be locked.
  std::set<std::string> all;
  TRY(read("", all));
  std::vector<std::string> locked;
  std::set_difference(all.begin(), all.end(), free.begin(), free.end(), std::back_inserter(locked));
  return locked;
}

namespace {

constexpr int64_t kCheckIntervalUs = 60'000'000;
// Maximum number of repeated checks per batch. Further ones wait for the next batches, so that no
// batch is delayed.
constexpr int kRepeatsPerBatch = 16;
constexpr size_t kMaxRemembered = 200'000;

// Returns what is wrong, or an empty string.
SqlResult<std::string> Disagreement(sql::Connection& connection, const Wallet& wallet) {
  int64_t newest = 0;
  int64_t rows = 0;
  std::string hash(32, '\0');
  auto done = connection.Query(
      "SELECT sequence, hash FROM entry WHERE shard = $1 AND workspace = $2 AND sequence >= $3"
      " ORDER BY sequence LIMIT 2",
      {LedgerShard(wallet.workspace), wallet.workspace, wallet.sequence}, [&](const Row& row) {
        ++rows;
        newest = row.Int(0);
        hash = row.Text(1);
      });
  if (!done.ok()) return Fail{std::move(done).error()};
  if (rows == 0) {
    // The wallet's newest entry may be archived.
    done = connection.Query(
        "SELECT sequence, head FROM archive_workspace WHERE shard = $1 AND workspace = $2",
        {LedgerShard(wallet.workspace), wallet.workspace}, [&](const Row& row) {
          newest = row.Int(0);
          hash = row.Text(1);
        });
    if (!done.ok()) return Fail{std::move(done).error()};
  }
  const std::string at = "the wallet is at entry " + std::to_string(wallet.sequence);
  if (rows > 1) return at + ", and there are more entries";
  if (newest != wallet.sequence) return at + ", and that entry is missing";
  return hash == wallet.head ? std::string() : at + ", and their hashes differ";
}

// Returns the workspaces whose wallet matches its newest entry. For the others Disagreement says
// why, or finds that the entry is archived. One statement for all. Returns none on Citus, which
// would run the statement on every piece of the tables and open connections for that, because it
// does not see the equality on the shard within the subqueries.
SqlResult<std::set<std::string>> Sound(sql::Connection& connection, const State& state,
                                       const std::set<std::string_view>& workspaces) {
  std::set<std::string> sound;
  if (workspaces.empty() || connection.distributed()) return sound;
  static constexpr sql::Connection::KeyColumn kKey[] = {{"shard", sql::Param::Kind::kInt},
                                                        {"workspace", sql::Param::Kind::kText}};
  static const std::string kOfIt =
      " FROM entry e WHERE e.shard = wallet.shard AND e.workspace = wallet.workspace"
      " ORDER BY e.sequence DESC LIMIT 1)";
  static const std::string kHead = "SELECT workspace, (SELECT e.sequence" + kOfIt +
                                   ", (SELECT e.hash" + kOfIt + " FROM wallet WHERE";
  std::vector<sql::Param> keys;
  for (const std::string_view name : workspaces) keys.insert(keys.end(), {LedgerShard(name), name});
  auto done = connection.QueryKeys(kHead, kKey, keys, "", [&](const Row& row) {
    const auto wallet = state.wallets.find(row.Text(0));
    if (wallet == state.wallets.end() || row.IsNull(1)) return;
    if (row.Int(1) == wallet->second.sequence && row.Bytes(2) == wallet->second.head) {
      sound.insert(wallet->first);
    }
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return sound;
}

}  // namespace

SqlResult<void> WalletChecker::Check(sql::Connection& connection, State& state, int64_t now_us) {
  if (checked_us_.size() > kMaxRemembered) checked_us_.clear();
  std::set<std::string_view> due;
  int again = 0;
  for (const auto& [workspace, wallet] : state.wallets) {
    const auto checked = checked_us_.find(workspace);
    const bool is_first = checked == checked_us_.end();
    // A wallet is always checked before its first use, and while it is known to be broken: another
    // runner or replica may have found that.
    const bool always = is_first || wallet.frozen == Freeze::kFailedCheck;
    if (!always && now_us - checked->second < kCheckIntervalUs) continue;
    if (always || ++again <= kRepeatsPerBatch) due.insert(workspace);
  }
  TRY(auto sound, Sound(connection, state, due));
  for (const std::string_view name : due) {
    const std::string workspace(name);
    std::string wrong;
    if (!sound.contains(workspace)) {
      TRY(auto why, Disagreement(connection, state.wallets.at(workspace)));
      wrong = std::move(why);
    }
    if (wrong.empty()) {
      checked_us_[workspace] = now_us;
    } else {
      checked_us_.erase(workspace);
      state.broken.emplace(workspace, std::move(wrong));
    }
  }
  return {};
}

SqlResult<std::string> FreezeBrokenWallet(sql::Connection& connection,
                                          const std::string& workspace) {
  static const std::string kWallet = "SELECT " + std::string(kWalletColumns) +
                                     " FROM wallet WHERE shard = $1 AND workspace = $2 FOR UPDATE";
  const int32_t shard = LedgerShard(workspace);
  TRY(auto tx, sql::Transaction::Begin(connection));
  TRY(KeepInPlace(connection, shard));
  Wallet wallet;
  TRY(connection.Query(kWallet, {shard, workspace},
                       [&](const Row& row) { wallet = ReadWallet(row); }));
  if (wallet.workspace.empty()) return std::string();
  auto wrong = Disagreement(connection, wallet);
  if (!wrong.ok() || wrong->empty() || wallet.frozen == Freeze::kFailedCheck) return wrong;
  TRY(connection.Execute("UPDATE wallet SET frozen = $1 WHERE shard = $2 AND workspace = $3",
                         {static_cast<int>(Freeze::kFailedCheck), shard, workspace}));
  TRY(tx.Commit());
  return wrong;
}

}  // namespace tollgate::billing
