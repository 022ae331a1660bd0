#include "services/billing/verify/verify_wallet.h"

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/base/ledger_shard.h"
#include "common/base/try.h"
#include "services/billing/domain/dead_letter.h"
#include "services/billing/storage/schema.h"
#include "services/billing/verify/verify_leases.h"

namespace tollgate::billing {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;

SqlResult<void> CheckMonths(Connection& db, const WorkspaceState& state, Findings& findings) {
  static const std::string kText = "SELECT " + std::string(kMonthColumns) +
                                   " FROM cap_month WHERE shard = $1 AND workspace = $2";
  std::map<int64_t, MonthSums> months = state.months;
  auto read = db.Query(kText, {LedgerShard(state.workspace), state.workspace}, [&](const Row& row) {
    const Month month = ReadMonth(row);
    const std::string name = " of month " + std::to_string(month.month);
    const auto sums = months.find(month.month);
    if (sums == months.end()) return findings.Report("cap_month: no entry is" + name);
    findings.Expect(month.spent_nano_usd, sums->second.spent, "spend" + name);
    findings.Expect(month.held_nano_usd, sums->second.held, "the held amount" + name);
    months.erase(sums);
  });
  if (!read.ok()) return read;
  for (const auto& [month, sums] : months) {
    if (sums.spent != 0 || sums.held != 0) {
      findings.Report("cap_month: no row for month " + std::to_string(month));
    }
  }
  return read;
}

}  // namespace

SqlResult<WorkspaceState> StartState(Connection& db, const std::string& workspace,
                                     bool may_lack_digest, Findings& findings) {
  WorkspaceState state;
  state.workspace = workspace;
  auto read = db.Query(
      "SELECT sequence, head, state, digest, month FROM archive_workspace WHERE shard = $1"
      " AND workspace = $2",
      {LedgerShard(workspace), workspace}, [&](const Row& row) {
        if (!row.IsNull(3) && row.Bytes(3) != Sha256(row.Bytes(2))) {
          findings.Report("archive_workspace: the state does not have its digest");
        } else if (row.IsNull(3) && !may_lack_digest) {
          findings.Report(
              "archive_workspace: the state has no digest, because an earlier version archived it;"
              " the next run of the archive recomputes it, and verify with --archive, too");
        }
        auto archived = DecodeState(row.Bytes(2));
        if (!archived || archived->workspace != workspace || archived->sequence != row.Int(0) ||
            archived->head != row.Bytes(1) ||
            archived->cut_us != UtcMonthStartUs(NextMonth(static_cast<int32_t>(row.Int(4))))) {
          return findings.Report("archive_workspace is damaged");
        }
        state = std::move(*archived);
      });
  if (!read.ok()) return Fail{std::move(read).error()};
  return state;
}

SqlResult<void> CheckWallet(Connection& db, const WorkspaceState& state, const WorkspaceRows& rows,
                            Findings& findings) {
  static const std::string kText =
      "SELECT " + std::string(kWalletColumns) + " FROM wallet WHERE shard = $1 AND workspace = $2";
  Wallet wallet;
  bool found = false;
  auto read = db.Query(kText, {LedgerShard(state.workspace), state.workspace}, [&](const Row& row) {
    wallet = ReadWallet(row);
    found = true;
  });
  if (!read.ok()) return read;
  if (!found) {
    // A dead letter may belong to a workspace that never had a wallet.
    for (const std::string& table : rows.tables) {
      if (table != "dead_letter") findings.Report("rows of " + table + " have no wallet");
    }
    return CheckMonths(db, state, findings);
  }
  const auto sum = [&](Account account) { return state.sums[static_cast<size_t>(account)]; };
  findings.Expect(wallet.paid_nano_usd, sum(Account::kPaid), "paid credit");
  findings.Expect(wallet.granted_nano_usd, sum(Account::kGranted), "granted credit");
  findings.Expect(wallet.held_nano_usd, sum(Account::kHeld), "the held amount");
  findings.Expect(wallet.receivable_nano_usd, -sum(Account::kReceivable), "the receivable");
  findings.Expect(wallet.sequence, state.sequence, "the last sequence");
  findings.Expect(wallet.clock_us, state.clock_us, "the clock");
  // Leases that reserve something also count as open holds.
  findings.Expect(wallet.open_holds - wallet.leases, state.open_holds, "the number of open holds");
  findings.Expect(wallet.cap_nano_usd.value_or(-1), state.cap.value_or(-1), "the cap");
  // A wallet that contradicts its entries is frozen without an entry.
  if (wallet.frozen != Freeze::kFailedCheck) {
    findings.Expect(static_cast<int64_t>(wallet.frozen), state.frozen, "the freeze");
  }
  if (wallet.head != state.head) {
    findings.Report("the head of the chain is not the last entry's hash");
  }
  TRY(CheckLeases(db, state, wallet, findings));
  return CheckMonths(db, state, findings);
}

SqlResult<void> CheckDeadLetters(Connection& db, const std::string& workspace, Findings& findings) {
  return db.Query(
      "SELECT id, number, at_us, state, resolved_us, operation FROM dead_letter WHERE shard = $1"
      " AND workspace = $2",
      {LedgerShard(workspace), workspace}, [&](const Row& row) {
        const auto id = Id::FromBytes(row.Bytes(0));
        const std::string name = "dead letter " + (id ? id->ToHex() : std::string("of a bad id")) +
                                 " number " + std::to_string(row.Int(1));
        const bool open = row.Int(3) == 1;
        if (!id || row.Int(2) <= 0 || row.Int(3) < 1 ||
            !DecodeSettle(row.Bytes(5), *id, workspace)) {
          findings.Report(name + " is damaged");
        }
        if (open != (row.Int(4) == 0)) {
          findings.Report(name +
                          (open ? " is open but was resolved" : " is resolved without a time"));
        }
      });
}

}  // namespace tollgate::billing
