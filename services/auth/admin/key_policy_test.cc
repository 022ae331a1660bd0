#include "services/auth/admin/key_policy.h"

#include <thread>

#include "services/auth/testing/auth_world.h"

namespace tollgate::auth {
namespace {

namespace pb = tollgate::admin::v1;

class KeyPolicyTest : public AuthWorld {};
INSTANTIATE_TEST_SUITE_P(Databases, KeyPolicyTest,
                         ::testing::Values(DatabaseKind::kSqlite, DatabaseKind::kPostgres),
                         NameOfKind);

// The database would resolve a deadlock after a second by aborting one of the two.
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

// A used canary key is disabled at once, and the workspace's audit log says why. A key with a
// similar label is not disabled.
TEST_P(KeyPolicyTest, ACanaryKeyThatIsUsedIsDisabled) {
  pb::Key canary, other;
  (*canary.mutable_labels())["team"] = "a";
  (*canary.mutable_labels())["tollgate-canary"] = "true";
  (*other.mutable_labels())["my-tollgate-canary"] = "true";
  const std::string found = MakeAKey("canary", canary).key().name();
  const std::string used = MakeAKey("other", other).key().name();
  v1::ReportKeyUseRequest report;
  report.set_reporter("gateway");
  for (const std::string& name : {found, used}) {
    v1::KeyUse& use = *report.add_uses();
    use.set_key_id(name.substr(name.rfind('/') + 1));
    use.set_last_used_us(clock_.WallUs());
    use.set_hour(clock_.WallUs() / 3'600'000'000);
    use.set_requests_in_hour(1);
  }
  ASSERT_TRUE(StoreUse(*store_, {}, report));
  EXPECT_EQ(Read(found).state(), pb::KEY_STATE_DISABLED);
  EXPECT_EQ(Read(used).state(), pb::KEY_STATE_ACTIVE);
  EXPECT_EQ(Events().back().actor, "policy:canary");
  EXPECT_EQ(Events().back().action, "key.disable");
  EXPECT_EQ(Events().back().detail, "a canary key was used");
  // Reports the same use again.
  const size_t events = Events().size();
  ASSERT_TRUE(StoreUse(*store_, {}, report));
  EXPECT_EQ(Events().size(), events) << "disabled already";
}

}  // namespace
}  // namespace tollgate::auth
