#include "common/base/ledger_shard.h"

#include <gtest/gtest.h>

namespace tollgate {
namespace {

// Computed with another program: stored rows depend on these values.
TEST(LedgerShard, IsTheSameForever) {
  EXPECT_EQ(LedgerShard("acme"), 555);
  EXPECT_EQ(LedgerShard("default"), 936);
  EXPECT_EQ(LedgerShard("w1"), 197);
}

}  // namespace
}  // namespace tollgate
