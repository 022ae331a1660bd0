#include "tests/engine_faults/books.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/chaos/load.h"
#include "tests/engine_faults/garbles.h"

namespace tollgate::test {
namespace {

constexpr int kMostTries = 4;  // two engines, each perhaps twice after a lost connection
constexpr int64_t kMostPromptTokens = 1'000;  // more than any estimate of these prompts

const char* NameOf(Verdict::End end) {
  switch (end) {
    case Verdict::End::kWhole:
      return "whole";
    case Verdict::End::kRefused:
      return "refused";
    case Verdict::End::kFailedInStream:
      return "failed in the stream";
    case Verdict::End::kLeft:
      return "left";
    case Verdict::End::kNone:
      break;
  }
  return "no legal end";
}

std::string Describe(const FaultCall& call, const std::vector<ReceiptView>& receipts,
                     const Journals& journals) {
  const Verdict& verdict = call.verdict;
  std::string text =
      call.tag + " " + PathOf(call.surface) + (call.streamed ? ", streamed, " : ", ") +
      NameOf(verdict.end) + ", status " + std::to_string(verdict.status) + " " + verdict.code +
      ", of [" + verdict.mark + "], saw " + std::to_string(verdict.tokens) + ", told " +
      std::to_string(verdict.prompt_told) + "+" + std::to_string(verdict.output_told) + ", took " +
      std::to_string(call.took_us / 1000) + " ms; tries:";
  const auto [begin, end] = journals.by_tag.equal_range(call.tag);
  for (auto at = begin; at != end; ++at) {
    text += " (" + at->second.fault + " " + std::to_string(at->second.prompt_tokens) + "+" +
            std::to_string(at->second.tokens) + (at->second.streamed ? " streamed)" : ")");
  }
  text += "; ledger:";
  for (const ReceiptView& receipt : receipts) {
    text += " " + receipt.state + " " + receipt.outcome + " " +
            std::to_string(receipt.prompt_tokens) + "+" +
            std::to_string(receipt.completion_tokens) + " = " + std::to_string(receipt.charged);
  }
  for (const std::string& wrong : verdict.wrong) text += "\n  " + wrong;
  return text + (call.bytes.empty() ? "" : "\n" + call.bytes);
}

// The most tokens that an engine may have produced for it.
int64_t MostTokens(const std::string& tag, const Journals& journals) {
  int64_t most = 0;
  const auto [begin, end] = journals.by_tag.equal_range(tag);
  for (auto at = begin; at != end; ++at) most = std::max(most, at->second.tokens);
  return most;
}

bool WasRefused(const std::string& tag, const Journals& journals) {
  const auto [begin, end] = journals.by_tag.equal_range(tag);
  return std::any_of(begin, end, [](const auto& at) { return at.second.fault == kRefusal; });
}

void CompareCall(const FaultCall& call, const std::vector<ReceiptView>& receipts,
                 const Journals& journals, FaultFigures& figures) {
  const Verdict& verdict = call.verdict;
  SCOPED_TRACE(Describe(call, receipts, journals));
  EXPECT_TRUE(verdict.wrong.empty());
  EXPECT_LE(receipts.size(), 1u) << "one id for all attempts";
  const auto tries = static_cast<int64_t>(journals.by_tag.count(call.tag));
  EXPECT_LE(tries, kMostTries);
  figures.retried += tries > 1 ? 1 : 0;
  if (!verdict.code.empty()) ++figures.errors[std::to_string(verdict.status) + " " + verdict.code];
  const ReceiptView receipt = receipts.empty() ? ReceiptView() : receipts.front();
  figures.charged_nano_usd += receipt.charged;
  const bool embeds = call.surface == Surface::kEmbeddings;
  const auto cost = [&](int64_t prompt, int64_t output) {
    return Load::Cost(prompt, embeds ? 0 : output);
  };
  if (call.streamed && verdict.end != Verdict::End::kLeft) {
    figures.longest_wait_us = std::max(figures.longest_wait_us, call.longest_wait_us);
  }
  figures.slowest_us = std::max(figures.slowest_us, call.took_us);
  // The attempt that produced the text.
  const auto own = journals.by_mark.find(verdict.mark);
  if (!verdict.mark.empty()) {
    ASSERT_NE(own, journals.by_mark.end()) << "no engine generated it";
    EXPECT_EQ(own->second.tag, call.tag);
  }
  switch (verdict.end) {
    case Verdict::End::kWhole:
      ++figures.whole;
      EXPECT_EQ(receipt.charged, cost(verdict.prompt_told, verdict.output_told))
          << "lost or charged twice";
      EXPECT_EQ(receipt.prompt_tokens, verdict.prompt_told);
      EXPECT_EQ(receipt.completion_tokens, verdict.output_told);
      if (embeds) return;
      ASSERT_FALSE(verdict.mark.empty()) << "an answer without a token";
      EXPECT_EQ(verdict.tokens, own->second.tokens) << "the answer lacks its end";
      EXPECT_EQ(verdict.prompt_told, own->second.prompt_tokens);
      return;
    case Verdict::End::kRefused:
      ++figures.refused;
      EXPECT_EQ(receipt.charged, 0) << "charged for an error";
      if (verdict.status == 400) {
        EXPECT_TRUE(WasRefused(call.tag, journals))
            << "an engine's failure was blamed on the caller";
      }
      return;
    case Verdict::End::kFailedInStream:
      ++figures.failed;
      if (verdict.tokens == 0) {
        EXPECT_EQ(receipt.charged, 0) << "charged before any output";
        return;
      }
      EXPECT_EQ(receipt.prompt_tokens, own->second.prompt_tokens);
      EXPECT_GE(receipt.completion_tokens, verdict.tokens) << "delivered output was not charged";
      EXPECT_LE(receipt.completion_tokens, own->second.tokens);
      EXPECT_EQ(receipt.charged, cost(receipt.prompt_tokens, receipt.completion_tokens));
      return;
    case Verdict::End::kLeft:
      ++figures.left;
      EXPECT_GE(receipt.charged, 0);
      EXPECT_LE(receipt.charged, cost(kMostPromptTokens, MostTokens(call.tag, journals)));
      if (verdict.tokens > 0) {
        EXPECT_GE(receipt.charged, cost(0, verdict.tokens)) << "delivered output was not charged";
      }
      return;
    case Verdict::End::kNone:
      return;
  }
}

using Receipts = std::map<std::string, std::vector<ReceiptView>>;  // by tag

// Returns false when the ledger cannot be read.
bool Read(Cluster& cluster, const Callers& callers, Receipts& receipts,
          std::map<std::string, int64_t>& charged) {
  receipts.clear();
  charged.clear();
  for (const ApiKey& customer : callers.customers()) {
    const auto all = cluster.Receipts(customer.workspace_id);
    if (!all) return false;
    for (const ReceiptView& receipt : *all) {
      receipts[receipt.client_request_id].push_back(receipt);
      charged[customer.workspace_id] += receipt.charged;
    }
  }
  return true;
}

}  // namespace

FaultFigures CompareBooks(Cluster& cluster, const Callers& callers, const Journals& journals,
                          int64_t hold_ttl_seconds) {
  FaultFigures figures;
  for (const ApiKey& customer : callers.customers()) {
    EXPECT_TRUE(cluster.WaitIdle(customer.workspace_id, hold_ttl_seconds * 1000))
        << "a hold of " << customer.workspace_id << " outlived its call";
  }
  // Voids of calls that ended in an error may still wait for their next attempt.
  Receipts receipts;
  std::map<std::string, int64_t> charged, before;
  bool read = Read(cluster, callers, receipts, charged);
  while (read && charged != before) {
    before = charged;
    SleepMs(1'500);
    read = Read(cluster, callers, receipts, charged);
  }
  EXPECT_TRUE(read) << "the ledger cannot be read";
  if (!read) return figures;
  std::set<std::string> tags;
  for (const FaultCall& call : callers.calls()) {
    tags.insert(call.tag);
    CompareCall(call, receipts[call.tag], journals, figures);
  }
  for (const auto& [tag, all] : receipts)
    EXPECT_TRUE(tags.contains(tag)) << "no caller made " << tag;
  for (const ApiKey& customer : callers.customers()) {
    const auto balance = cluster.Balance(customer.workspace_id);
    EXPECT_TRUE(balance && balance->open_holds == 0 && balance->held == 0);
    EXPECT_TRUE(balance && balance->posted == Callers::kCredit - charged[customer.workspace_id]);
  }
  EXPECT_EQ(cluster.OpenDeadLetters(), 0) << "a settlement was refused";
  const LedgerCheck check = cluster.VerifyLedger();
  EXPECT_TRUE(check.ok) << check.violations;
  figures.entries = check.entries;
  return figures;
}

}  // namespace tollgate::test
