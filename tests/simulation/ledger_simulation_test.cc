// Random histories against the naive ledger: every reply and every balance must agree. A failure
// prints its seed; TOLLGATE_SIM_SEED runs that seed alone, TOLLGATE_SIM_SECONDS runs fresh seeds
// for longer.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <set>

#include "services/billing/domain/chain.h"
#include "services/billing/domain/ledger.h"
#include "services/billing/domain/results.h"
#include "services/billing/domain/testing/ledger_history.h"
#include "tests/simulation/naive_ledger.h"

namespace tollgate::simulation {
namespace {

using billing::Applied;
using billing::Entry;
using billing::History;
using billing::HoldState;
using billing::Operation;

std::string NameOf(const Operation& operation) {
  return billing::kOperationNames[operation.index()];
}

std::string Show(const Operation& operation, const Reply& reply) {
  return NameOf(operation) + " " + RequestIdOf(operation).ToHex() + " ws " +
         WorkspaceOf(operation) + ": ok " + std::to_string(reply.ok) + " denied " +
         std::to_string(static_cast<int>(reply.denied_by)) + " authorized " +
         std::to_string(reply.authorized_nano_usd) + " charged " +
         std::to_string(reply.charged_nano_usd) + " slice " + std::to_string(reply.slice_nano_usd) +
         " retry " + std::to_string(reply.retry_after_ms);
}

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : history_(seed) {
    policy_.second_person_above_nano_usd = NaiveLedger::kOnePersonNanoUsd;
  }

  // Returns false, with the difference in text, when the two ledgers disagree.
  bool Run(int operations) {
    for (int done = 0; done < operations;) {
      std::vector<Operation> batch;
      const size_t size = 1 + history_.Below(8);
      while (batch.size() < size) batch.push_back(history_.NextOperation());
      const int64_t now = history_.NextTime();
      done += static_cast<int>(size);
      // A crash before COMMIT: the result is lost, and the callers retry.
      if (history_.Below(20) == 0) {
        billing::State lost = state_;
        (void)billing::Apply(lost, batch, now, policy_);
      }
      if (!Step(batch, now)) return false;
      // A crash after COMMIT, or lost replies: the callers retry.
      if (history_.Below(20) == 0 && !Step(batch, now + 1000)) return false;
    }
    return Liveness();
  }
  const std::string& text() const { return text_; }
  std::map<std::pair<std::string, Deny>, int> seen;

 private:
  bool Step(const std::vector<Operation>& batch, int64_t now) {
    const Applied applied = billing::Apply(state_, batch, now, policy_);
    if (!applied.violations.empty()) return Differ("violation: " + applied.violations.front());
    for (size_t i = 0; i < batch.size(); ++i) {
      const Reply expected = naive_.Do(batch[i], now);
      Reply got = applied.replies[i];
      got.balance = {};  // compared below
      ++seen[{NameOf(batch[i]), got.denied_by}];
      if (!billing::CanResultIn(batch[i].index(), got.denied_by)) {
        return Differ("results.h lacks " + Show(batch[i], got));
      }
      if (!(got == expected)) {
        return Differ("ledger " + Show(batch[i], got) + "\n naive " + Show(batch[i], expected));
      }
    }
    for (const Entry& entry : applied.entries) {
      Chain& chain = chains_[entry.workspace];
      if (entry.sequence != ++chain.sequence ||
          entry.hash != billing::EntryHash(chain.head, entry)) {
        return Differ("the chain of " + entry.workspace + " is broken");
      }
      chain.head = entry.hash;
      if (entry.debit == billing::Account::kOverrun) overrun_nano_usd_ += entry.amount_nano_usd;
      if (entry.credit == billing::Account::kOverrun) overrun_nano_usd_ -= entry.amount_nano_usd;
    }
    return Balances();
  }

  bool Balances() {
    for (const auto& [name, wallet] : state_.wallets) {
      const NaiveLedger::Sums sums = naive_.SumsOf(name);
      if (wallet.paid_nano_usd != sums.paid_nano_usd ||
          wallet.granted_nano_usd != sums.granted_nano_usd ||
          wallet.held_nano_usd != sums.held_nano_usd || wallet.open_holds != sums.open ||
          wallet.receivable_nano_usd != sums.receivable_nano_usd || wallet.frozen != sums.frozen) {
        return Differ("balances of " + name);
      }
    }
    for (const auto& [key, month] : state_.months) {
      if (month.spent_nano_usd != naive_.SpentNanoUsd(month.workspace, month.month)) {
        return Differ("spend of " + key);
      }
    }
    if (overrun_nano_usd_ != naive_.overrun_nano_usd()) return Differ("overrun");
    return true;
  }

  // Without further operations, expiry alone must release every hold.
  bool Liveness() {
    int64_t now = history_.NextTime();
    for (const auto& [id, hold] : state_.holds) now = std::max(now, hold.expires_us);
    std::vector<Operation> batch;
    for (const auto& [id, hold] : state_.holds) {
      if (hold.state != HoldState::kOpen) continue;
      batch.push_back(billing::Expire{id, hold.workspace});
    }
    if (!Step(batch, now + 1)) return false;
    for (const auto& [name, wallet] : state_.wallets) {
      if (wallet.held_nano_usd != 0 || wallet.open_holds != 0)
        return Differ("a hold stays open in " + name);
    }
    return true;
  }

  bool Differ(std::string what) {
    text_ = std::move(what);
    return false;
  }

  struct Chain {
    int64_t sequence = 0;
    std::string head = std::string(32, '\0');
  };
  History history_;
  billing::State state_;
  billing::Policy policy_;
  NaiveLedger naive_;
  std::map<std::string, Chain> chains_;
  int64_t overrun_nano_usd_ = 0;
  std::string text_;
};

TEST(LedgerSimulation, AgreesWithTheNaiveLedger) {
  if (const char* seed = std::getenv("TOLLGATE_SIM_SEED")) {
    Simulation simulation(std::strtoull(seed, nullptr, 10));
    ASSERT_TRUE(simulation.Run(1000)) << "seed " << seed << ": " << simulation.text();
    return;
  }
  const char* given = std::getenv("TOLLGATE_SIM_SECONDS");
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(given ? std::atoi(given) : 15);
  // A longer run uses other seeds than every test run does.
  const uint64_t first = given ? std::random_device()() * uint64_t{1'000'000} : 1;
  std::map<std::pair<std::string, Deny>, int> seen;
  uint64_t seed = first;
  for (; std::chrono::steady_clock::now() < end && (given || seed < first + 150); ++seed) {
    Simulation simulation(seed);
    ASSERT_TRUE(simulation.Run(1000)) << "seed " << seed << ": " << simulation.text();
    for (const auto& [what, count] : simulation.seen) seen[what] += count;
  }
  std::printf("%llu histories of 1000 operations\n", static_cast<unsigned long long>(seed - first));
  // The histories must cover these results.
  const std::set<std::pair<std::string, Deny>> wanted = {
      {"authorize", Deny::kNone},    {"authorize", Deny::kNoCredit}, {"authorize", Deny::kCap},
      {"authorize", Deny::kHeld},    {"authorize", Deny::kIdReuse},  {"authorize", Deny::kClosed},
      {"authorize", Deny::kInvalid}, {"extend", Deny::kNone},        {"extend", Deny::kCap},
      {"extend", Deny::kNoCredit},   {"extend", Deny::kHeld},        {"extend", Deny::kClosed},
      {"heartbeat", Deny::kNone},    {"settle", Deny::kNone},        {"settle", Deny::kIdReuse},
      {"settle", Deny::kClosed},     {"void", Deny::kNone},          {"void", Deny::kClosed},
      {"expire", Deny::kNone},       {"expire", Deny::kInvalid},     {"add_credit", Deny::kIdReuse},
      {"set_cap", Deny::kNone},      {"correct", Deny::kNone},       {"correct", Deny::kNoCredit},
      {"correct", Deny::kInvalid},   {"correct", Deny::kIdReuse},    {"decide", Deny::kNone},
      {"decide", Deny::kSamePerson}, {"authorize", Deny::kFrozen},
  };
  for (const auto& what : wanted) {
    EXPECT_GT(seen[what], 0) << what.first << "/" << static_cast<int>(what.second);
  }
}

}  // namespace
}  // namespace tollgate::simulation
