#include "tests/chaos/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/sql/sql.h"

namespace tollgate::test {
namespace {

struct Produced {
  int64_t tries = 0;
  int64_t prompt_tokens = 0;
  int64_t most = 0;      // the cost of the attempt that produced most
  bool as_told = false;  // one attempt produced exactly what the caller was told
};

struct LedgerView {
  std::map<std::string, std::vector<ReceiptView>> receipts;  // by request id of their call
  std::map<std::string, int64_t> charged;                    // by workspace
  std::map<std::string, int64_t> credit;                     // by workspace
  std::map<std::string, std::vector<int64_t>> grants;        // by the id of the top-up
  bool read = true;
};

LedgerView ReadLedger(Cluster& cluster, const Load& load) {
  LedgerView ledger;
  for (const ApiKey& customer : load.customers()) {
    const auto receipts = cluster.Receipts(customer.workspace_id);
    const auto credits = cluster.Credits(customer.workspace_id);
    if (!receipts || !credits) {
      ledger.read = false;
      return ledger;
    }
    for (const ReceiptView& receipt : *receipts) {
      ledger.receipts[receipt.client_request_id].push_back(receipt);
      ledger.charged[customer.workspace_id] += receipt.charged;
    }
    for (const CreditView& credit : *credits) {
      ledger.grants[credit.request_id].push_back(credit.nano_usd);
      ledger.credit[customer.workspace_id] += credit.nano_usd;
    }
  }
  return ledger;
}

std::map<std::string, Produced> ReadEngine(const EngineSim& engine, const Load& load) {
  std::map<std::string, const Call*> calls;
  for (const Call& call : load.calls()) calls[call.tag] = &call;
  std::map<std::string, Produced> produced;
  for (const SimRequest& request : engine.requests()) {
    Produced& by = produced[request.tag];
    ++by.tries;
    by.prompt_tokens = request.prompt_tokens;
    by.most = std::max(by.most, Load::Cost(request.prompt_tokens, request.tokens_generated));
    const auto call = calls.find(request.tag);
    by.as_told = by.as_told || (call != calls.end() && request.finished &&
                                request.prompt_tokens == call->second->prompt_tokens &&
                                request.tokens_generated == call->second->completion_tokens);
  }
  return produced;
}

std::string Describe(const Call& call, const std::vector<ReceiptView>& receipts,
                     const Produced& produced) {
  std::string text =
      call.tag + " of " + call.workspace + (call.streamed ? ", streamed" : ", whole") +
      ", status " + std::to_string(call.status) + (call.complete ? ", complete" : "") +
      (call.told_of_error ? ", told of an error" : "") + " " + call.error + "; told " +
      std::to_string(call.prompt_tokens) + "+" + std::to_string(call.completion_tokens) + ", saw " +
      std::to_string(call.seen_tokens) + "; engine: " + std::to_string(produced.tries) +
      " tries, at most " + std::to_string(produced.most) + "; ledger:";
  for (const ReceiptView& receipt : receipts) {
    text += " " + receipt.request_id + " " + receipt.state + " " + receipt.outcome + " " +
            std::to_string(receipt.prompt_tokens) + "+" +
            std::to_string(receipt.completion_tokens) + " = " + std::to_string(receipt.charged);
  }
  return text;
}

void CompareCall(const Call& call, std::vector<ReceiptView> receipts, const Produced& produced,
                 Figures& figures) {
  SCOPED_TRACE(Describe(call, receipts, produced));
  // When a lost router had settled a request without its answer, the request starts again under
  // another id, once, and is free (docs/design/ledger.md 3).
  if (receipts.size() == 2 && !call.streamed) {
    const auto free = std::find_if(receipts.begin(), receipts.end(),
                                   [](const ReceiptView& one) { return one.charged == 0; });
    EXPECT_NE(free, receipts.end()) << "charged twice";
    if (free != receipts.end()) receipts.erase(free);
  }
  // While dependencies are unreachable, callers get retryable errors, never a 4xx.
  const std::set<int> kExpected = {0, 200, 500, 502, 503};
  EXPECT_TRUE(kExpected.contains(call.status)) << "status " << call.status;
  EXPECT_LE(receipts.size(), 1u) << "one id for all attempts";
  EXPECT_LE(produced.tries, 4) << "two engines on each of two routers at most";
  if (!receipts.empty() && receipts.front().state.starts_with("expired")) {
    ++figures.expired;
    std::fprintf(stderr, "a hold has expired: %s\n", Describe(call, receipts, produced).c_str());
  }
  const int64_t charged = receipts.empty() ? 0 : receipts.front().charged;
  EXPECT_GE(charged, 0);
  EXPECT_LE(charged, produced.most) << "charged more than an engine produced";
  if (call.complete) {
    ++figures.complete;
    EXPECT_TRUE(produced.as_told) << "the caller received text that no engine produced";
    EXPECT_EQ(charged, Load::Cost(call.prompt_tokens, call.completion_tokens))
        << "lost or charged twice";
    if (receipts.empty()) return;
    EXPECT_EQ(receipts.front().prompt_tokens, call.prompt_tokens);
    EXPECT_EQ(receipts.front().completion_tokens, call.completion_tokens);
  } else if (call.seen_tokens > 0) {
    ++figures.cut;
    EXPECT_GE(charged, Load::Cost(produced.prompt_tokens, call.seen_tokens))
        << "delivered output was not charged";
  } else if (call.told_of_error) {
    ++figures.refused;
    EXPECT_EQ(charged, 0) << "charged for an error";
  } else {
    // The caller does not know how it ended: it is charged at most what was produced, as when it
    // disconnects.
    ++figures.no_answer;
  }
}

void CompareTopUps(const Load& load, LedgerView& ledger, Figures& figures) {
  for (const TopUp& top_up : load.top_ups()) {
    SCOPED_TRACE(top_up.id + " of " + top_up.workspace);
    const std::vector<int64_t>& grants = ledger.grants[top_up.id];
    EXPECT_LE(grants.size(), 1u) << "credit was given twice";
    if (top_up.acknowledged) {
      ++figures.top_ups;
      EXPECT_EQ(grants, std::vector<int64_t>{top_up.nano_usd}) << "acknowledged credit is lost";
    } else {
      ++figures.top_ups_unknown;
    }
  }
}

// Every nano-USD in a wallet is explained by a call or a top-up.
void CompareWallets(Cluster& cluster, const Load& load, LedgerView& ledger) {
  std::set<std::string> tags;
  for (const Call& call : load.calls()) tags.insert(call.tag);
  for (const auto& [tag, receipts] : ledger.receipts) {
    EXPECT_TRUE(tags.contains(tag)) << "no caller made " << tag;
  }
  for (const ApiKey& customer : load.customers()) {
    SCOPED_TRACE(customer.workspace_id);
    const auto balance = cluster.Balance(customer.workspace_id);
    ASSERT_TRUE(balance);
    EXPECT_EQ(balance->posted,
              ledger.credit[customer.workspace_id] - ledger.charged[customer.workspace_id]);
  }
}

}  // namespace

Figures& Figures::operator+=(const Figures& other) {
  complete += other.complete;
  refused += other.refused;
  cut += other.cut;
  no_answer += other.no_answer;
  top_ups += other.top_ups;
  top_ups_unknown += other.top_ups_unknown;
  expired += other.expired;
  entries += other.entries;
  whole += other.whole;
  return *this;
}

Figures CompareWithLedger(Cluster& cluster, const EngineSim& engine, const Load& load,
                          int64_t hold_ttl_seconds) {
  Figures figures;
  const int64_t deadline = MonotonicUs() + (2 * hold_ttl_seconds + 15) * 1'000'000;
  for (const ApiKey& customer : load.customers()) {
    const int64_t rest_ms = std::max<int64_t>((deadline - MonotonicUs()) / 1000, 0);
    EXPECT_TRUE(cluster.WaitIdle(customer.workspace_id, rest_ms))
        << "a hold of " << customer.workspace_id << " outlived its time";
  }
  EXPECT_TRUE(WaitUntil([&] { return engine.running() == 0; }, 5'000))
      << "an engine's request outlived its caller";
  std::map<std::string, Produced> produced = ReadEngine(engine, load);
  // Settlements behind an expired hold, and voids of refused calls, may still wait for their next
  // attempt: compare once nothing has changed for a while.
  const auto total = [](const LedgerView& of) {
    int64_t sum = 0;
    for (const auto& [workspace, charged] : of.charged) sum += charged;
    return sum;
  };
  LedgerView ledger = ReadLedger(cluster, load);
  for (int64_t last = -1; ledger.read && last != total(ledger);) {
    last = total(ledger);
    SleepMs(5'500);  // longer than between two attempts of a void
    ledger = ReadLedger(cluster, load);
  }
  EXPECT_TRUE(ledger.read) << "the ledger cannot be read";
  if (!ledger.read) return figures;
  for (const Call& call : load.calls()) {
    CompareCall(call, ledger.receipts[call.tag], produced[call.tag], figures);
  }
  CompareTopUps(load, ledger, figures);
  CompareWallets(cluster, load, ledger);
  EXPECT_EQ(cluster.OpenDeadLetters(), 0) << "a settlement was refused";
  for (const SimRequest& request : engine.requests()) {
    figures.whole += request.finished && !request.stream ? 1 : 0;
  }
  if (EnginesAlwaysStream()) {
    EXPECT_EQ(figures.whole, 0);
  } else {
    EXPECT_GT(figures.whole, 0) << "no engine was asked for a whole answer";
  }
  const LedgerCheck check = cluster.VerifyLedger();
  EXPECT_TRUE(check.ok) << check.violations;
  figures.entries = check.entries;
  return figures;
}

void CompareWithAuditLog(const std::string& billing_sql) {
  if (!billing_sql.starts_with("postgresql")) return;
  const auto database = sql::Database::Open({.url = billing_sql, .statement_timeout_ms = 60'000});
  ASSERT_TRUE(database.ok()) << database.error().message;
  const auto connection = (*database)->Connect();
  ASSERT_TRUE(connection.ok()) << connection.error().message;
  const auto number = [&](const std::string& text) {
    int64_t found = -1;
    auto read = (*connection)->Query(text, {}, [&](const sql::Row& row) { found = row.Int(0); });
    EXPECT_TRUE(read.ok()) << read.error().message;
    return found;
  };
  EXPECT_TRUE(
      WaitUntil([&] { return number("SELECT count(*) FROM audit_outbox") == 0; }, 90'000, 500))
      << "audit entries stay in the outbox";
  // kind 6: CommandKind::kAddCredit.
  const std::string of_credit = " FROM audit_entry WHERE action = 'credit.add'";
  const int64_t booked = number("SELECT count(*) FROM command WHERE kind = 6 AND granted = 0");
  // A commit in two phases removes the entries from the outbox a moment before the log has them.
  EXPECT_TRUE(WaitUntil([&] { return number("SELECT count(*)" + of_credit) >= booked; }, 10'000));
  EXPECT_EQ(number("SELECT count(*)" + of_credit), booked);
  EXPECT_EQ(number("SELECT count(DISTINCT workspace_id || ' ' || subject)" + of_credit), booked);
  EXPECT_GT(booked, 0);
}

}  // namespace tollgate::test
