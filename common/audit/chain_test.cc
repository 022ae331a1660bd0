#include "common/audit/chain.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace tollgate::audit {
namespace {

Record Make(int64_t sequence) {
  Record record;
  record.sequence = sequence;
  record.at_us = 1'000'000 + sequence;
  record.actor = "user:ann";
  record.action = "cap.update";
  record.workspace_id = "acme";
  record.subject = "acme";
  record.detail = "5 USD";
  record.address = "192.0.2.7";
  record.request_id = "r" + std::to_string(sequence);
  return record;
}

TEST(ChainTest, EveryFieldIsCoveredByTheHash) {
  const std::vector<std::function<void(Record&)>> changes = {
      [](Record& r) { ++r.sequence; },
      [](Record& r) { ++r.at_us; },
      [](Record& r) { r.actor += "x"; },
      [](Record& r) { r.action += "x"; },
      [](Record& r) { r.workspace_id += "x"; },
      [](Record& r) { r.subject += "x"; },
      [](Record& r) { r.detail += "x"; },
      [](Record& r) { r.address += "x"; },
      [](Record& r) { r.request_id += "x"; },
      [](Record& r) { r.source += "x"; },
      [](Record& r) { ++r.source_sequence; },
      [](Record& r) { r.source_hash += "x"; },
      [](Record& r) { --r.format; }};
  const std::string hash = HashOf(GenesisHash(), Make(1));
  for (size_t i = 0; i < changes.size(); ++i) {
    Record changed = Make(1);
    changes[i](changed);
    EXPECT_NE(HashOf(GenesisHash(), changed), hash) << i;
  }
  EXPECT_NE(HashOf(std::string(32, 'x'), Make(1)), hash);
}

TEST(ChainTest, TextsCannotMoveFromOneFieldToTheNext) {
  Record a = Make(1), b = Make(1);
  a.subject = "ab";
  a.detail = "c";
  b.subject = "a";
  b.detail = "bc";
  EXPECT_NE(HashOf(GenesisHash(), a), HashOf(GenesisHash(), b));
}

TEST(ChainTest, AnOlderFormatHasNoneOfTheLaterFields) {
  for (const int64_t format : {1, 2}) {
    Record old = Make(1);
    old.request_id.clear();
    if (format == 1) old.address.clear();
    old.format = format;
    old.hash = HashOf(GenesisHash(), old);
    EXPECT_TRUE(Verifier().Add(old)) << format;
    // The hash does not cover it, so it must be empty.
    Record slipped = old;
    slipped.source = "billing";
    slipped.source_sequence = 1;
    EXPECT_EQ(HashOf(GenesisHash(), slipped), old.hash);
    EXPECT_FALSE(Verifier().Add(slipped)) << format;
  }
  Record future = Make(1);
  future.format = kFormat + 1;
  future.hash = HashOf(GenesisHash(), future);
  EXPECT_FALSE(Verifier().Add(future));
}

TEST(ChainTest, AVerifierContinuesWhereAnotherOneEnded) {
  std::vector<Record> records;
  std::string hash = GenesisHash();
  for (int64_t i = 1; i <= 4; ++i) {
    records.push_back(Make(i));
    records.back().hash = hash = HashOf(hash, records.back());
  }
  Verifier first;
  EXPECT_TRUE(first.Add(records[0]));
  EXPECT_TRUE(first.Add(records[1]));
  Verifier second(first.sequence(), first.hash());
  EXPECT_TRUE(second.Add(records[2]));
  EXPECT_TRUE(second.Add(records[3]));
  EXPECT_TRUE(second.Finish(4, hash));
  // Neither at another position nor after another chain.
  EXPECT_FALSE(Verifier(1, first.hash()).Add(records[2]));
  EXPECT_FALSE(Verifier(2, GenesisHash()).Add(records[2]));
  EXPECT_FALSE(Verifier(2, first.hash()).Finish(4, hash));
}

}  // namespace
}  // namespace tollgate::audit
