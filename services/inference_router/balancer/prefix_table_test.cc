#include "services/inference_router/balancer/prefix_table.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kTableNow = 5'000'000'000;

std::set<int> Find(const PrefixTable& table, uint64_t hash, int64_t now_us = kTableNow) {
  std::set<int> engines;
  table.Find(hash, now_us, [&](uint16_t engine) { engines.insert(engine); });
  return engines;
}
// Hashes that fall into the same set.
uint64_t Hash(uint64_t tag) { return tag << 32 | 5; }

TEST(PrefixTable, FindsTheEnginesThatWereGivenABeginning) {
  PrefixTable table(8);
  EXPECT_EQ(Find(table, Hash(1)), std::set<int>{});
  table.Add(Hash(1), 3, kTableNow);
  table.Add(Hash(1), 4, kTableNow);
  table.Add(Hash(1), 4, kTableNow);
  table.Add(Hash(2), 5, kTableNow);
  EXPECT_EQ(Find(table, Hash(1)), (std::set<int>{3, 4}));
  EXPECT_EQ(Find(table, Hash(2)), std::set<int>{5});
  EXPECT_EQ(Find(table, Hash(0)), std::set<int>{}) << "a free entry must not match a hash";
}

TEST(PrefixTable, AfterAMoveOnlyTheNewEngineIsFound) {
  PrefixTable table(8);
  table.Move(Hash(1), 3, kTableNow);
  table.Move(Hash(2), 3, kTableNow);
  table.Move(Hash(1), 4, kTableNow);
  EXPECT_EQ(Find(table, Hash(1)), std::set<int>{4});
  EXPECT_EQ(Find(table, Hash(2)), std::set<int>{3}) << "of another session";
}

TEST(PrefixTable, TheEntryUsedLongestAgoMakesRoom) {
  PrefixTable table(8);
  int64_t now_us = kTableNow;
  for (uint64_t tag = 1; tag <= PrefixTable::kWays; ++tag) {
    table.Add(Hash(tag), 1, now_us += 10'000'000);
  }
  table.Add(Hash(1), 1, now_us += 10'000'000);  // used again
  table.Add(Hash(99), 1, now_us += 10'000'000);
  EXPECT_EQ(Find(table, Hash(2), now_us), std::set<int>{});
  for (const uint64_t tag : {1, 3, 8, 99}) {
    EXPECT_EQ(Find(table, Hash(tag), now_us), std::set<int>{1}) << tag;
  }
}

TEST(PrefixTable, AnEntryThatIsNotUsedExpires) {
  PrefixTable table(8);
  table.Add(Hash(1), 1, kTableNow);
  EXPECT_EQ(Find(table, Hash(1), kTableNow + PrefixTable::kExpiryUs - 5'000'000), std::set<int>{1});
  EXPECT_EQ(Find(table, Hash(1), kTableNow + PrefixTable::kExpiryUs + 5'000'000), std::set<int>{});
}

TEST(PrefixTable, ItsMemoryIsBounded) {
  EXPECT_EQ(PrefixTable(1).bytes(), 256u << 10);
  EXPECT_EQ(PrefixTable(8).bytes(), 1u << 20);
  EXPECT_EQ(PrefixTable(100'000).bytes(), 8u << 20);
}

// Meant for the thread sanitizer.
TEST(PrefixTable, LoopsMayUseItAtOnce) {
  PrefixTable table(2);
  std::vector<std::thread> threads;
  for (uint16_t engine = 1; engine <= 4; ++engine) {
    threads.emplace_back([&table, engine] {
      for (uint64_t i = 0; i < 20'000; ++i) {
        table.Add(Hash(i % 16 + 1), engine, kTableNow);
        table.Find(Hash(i % 16 + 1), kTableNow, [](uint16_t found) { EXPECT_LE(found, 4); });
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace tollgate::inference_router
