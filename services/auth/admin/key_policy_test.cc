#include "services/auth/admin/key_policy.h"

#include <thread>

#include "services/auth/testing/auth_world.h"

namespace tollgate::auth {
namespace {

class KeyPolicyTest : public AuthWorld {};
INSTANTIATE_TEST_SUITE_P(Databases, KeyPolicyTest,
                         ::testing::Values(DatabaseKind::kSqlite, DatabaseKind::kPostgres),
                         NameOfKind);

// A circle would be resolved by the database after a second, at the cost of one of the two.
TEST_P(KeyPolicyTest, ReportsOfUseAndChangesOfAllKeysDoNotWaitInACircle) {
  v1::ReportKeyUseRequest report;
  report.set_reporter("gateway");
  for (int i = 0; i < 60; ++i) {
    v1::KeyUse& use = *report.add_uses();
    use.set_key_id(IdOf(MakeAKey("key-" + std::to_string(i)).key()));
    use.set_hour(clock_.WallUs() / 3'600'000'000);
    use.set_minute(clock_.WallUs() / 60'000'000);
  }
  const auto deadlocks = [this] {
    int64_t count = 0;
    if (GetParam() == DatabaseKind::kSqlite) return count;
    EXPECT_TRUE(store_->Read([&](sql::Connection& sql) {
      return sql.Query("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
                       {}, [&](const sql::Row& row) { count = row.Int(0); });
    }));
    return count;
  };
  std::thread changes([&] {
    for (int i = 1; i <= 40; ++i) {
      EXPECT_TRUE(store_->UpdateLimits(
          {.request_id = "", .content = std::to_string(i), .actor = "local:test", .address = ""},
          "acme", [i](AuthStore::WorkspaceLimits& limits) -> Result<void> {
            limits.limits.requests_per_minute = i;
            return {};
          }));
    }
  });
  for (int i = 1; i <= 40; ++i) {
    for (v1::KeyUse& use : *report.mutable_uses()) {
      use.set_last_used_us(clock_.WallUs() - (100 - i) * 1'000'000);
      use.set_requests_in_hour(i);
    }
    EXPECT_TRUE(StoreUse(*store_, {}, report));
  }
  changes.join();
  EXPECT_EQ(deadlocks(), 0);
}

}  // namespace
}  // namespace tollgate::auth
