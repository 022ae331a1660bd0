#include "gateway/worker/second_chance_map.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tollgate::gateway {
namespace {

TEST(SecondChanceMap, EvictsEntriesThatWereNotUsed) {
  std::vector<int> evicted;
  SecondChanceMap<int> map(3, [&](const int& value) { evicted.push_back(value); });
  for (int i = 0; i < 3; ++i) map.Insert(std::to_string(i), i);
  ASSERT_NE(map.Find("0"), nullptr);
  map.Insert("3", 3);
  EXPECT_EQ(map.size(), 3u);
  EXPECT_NE(map.Find("0"), nullptr);
  EXPECT_EQ(map.Find("1"), nullptr);
  EXPECT_EQ(evicted, (std::vector<int>{1}));
  map.Erase("0");
  EXPECT_EQ(map.size(), 2u);
  for (int i = 10; i < 1000; ++i) map.Insert(std::to_string(i), i);
  EXPECT_EQ(map.size(), 3u);
}

}  // namespace
}  // namespace tollgate::gateway
